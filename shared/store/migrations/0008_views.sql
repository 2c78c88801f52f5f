-- What people query. A view runs with its owner's rights, so whoever may read it
-- needs nothing on the tables behind it.
set local role hookstead_owner;

-- Every delivery once, with its current state: the live round if there is one,
-- else the last finished one.
create view hookstead.deliveries with (security_barrier = true) as
select
    l.delivery_id, l.round, l.event_id, l.subscription_id, l.state, l.state_reason,
    l.attempt_count, l.attempt_budget, l.next_attempt_at, l.last_attempt_at, l.lease_expires_at,
    l.last_error_class, l.ordering_key, l.replay_id, l.filter_match_us, l.created_at,
    null::timestamptz as terminal_at
from hookstead.live_deliveries l
union all
select
    d.delivery_id, d.round, d.event_id, d.subscription_id, d.state, d.state_reason,
    d.attempt_count, d.attempt_budget, null, d.last_attempt_at, null,
    d.last_error_class, d.ordering_key, d.replay_id, d.filter_match_us, d.created_at,
    d.terminal_at
from hookstead.done_deliveries d
where not exists (select from hookstead.live_deliveries l where l.delivery_id = d.delivery_id)
  and not exists (
      select from hookstead.done_deliveries n where n.delivery_id = d.delivery_id and n.round > d.round);

-- An event without its body, its payload and its headers.
create view hookstead.event_summaries with (security_barrier = true) as
select
    event_id, source_id, external_event_id, event_type, tenant, schema_version, content_type,
    octet_length(raw_body) as raw_body_bytes, payload is not null as payload_parsed, payload_error,
    signature_verified, verified_with, occurred_at, received_at, cause_event_id, region
from hookstead.events;

-- An attempt without what the destination answered.
create view hookstead.attempt_summaries with (security_barrier = true) as
select
    delivery_id, round, attempt_number, started_at, ended_at, latency_ms, status_code, outcome,
    error_class, worker_id, region
from hookstead.attempts;

-- A source without its scheme, its URL and where its secret is kept.
create view hookstead.source_summaries with (security_barrier = true) as
select
    source_id, name, kind, tolerance_s, allowed_event_types, tenant, schema_version,
    retired_schema_versions, report_event_type, created_at, updated_at, disabled_at
from hookstead.sources;

-- A subscription without its destination's address, its filter and its secrets.
create view hookstead.subscription_summaries with (security_barrier = true) as
select
    subscription_id, name, tenant, source_id, event_types, destination ->> 'kind' as destination_kind,
    payload_filter is not null as filtered, retry_policy, schema_version, rate_limit_per_s,
    paused_until, consecutive_failures, first_failure_at, created_at, updated_at, disabled_at,
    disabled_reason
from hookstead.subscriptions;
