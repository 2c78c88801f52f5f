-- Who may do what. docs/data-model.md holds the same as a table, and a test tries
-- every forbidden thing. Deleting a finished delivery from the queue, dropping a
-- day and publishing become functions of the owner; no role gets a wider right
-- for their sake.
set local role hookstead_owner;

grant usage on schema hookstead to
    hookstead_receiver, hookstead_worker, hookstead_relay, hookstead_maintenance,
    hookstead_admin, hookstead_publisher, hookstead_support;

-- Receiver: reads what it matches against, writes events, their keys and deliveries.
grant select (
    source_id, name, kind, scheme, secret_ref, public_url, tolerance_s, allowed_event_types,
    dedupe_rule, tenant, schema_version, retired_schema_versions, report_event_type, disabled_at
) on hookstead.sources to hookstead_receiver;
grant select (
    subscription_id, tenant, source_id, event_type_patterns, payload_filter, retry_policy, disabled_at
) on hookstead.subscriptions to hookstead_receiver;
grant insert, select (source_id, external_event_id, event_id) on hookstead.event_keys to hookstead_receiver;
grant insert on hookstead.events to hookstead_receiver;
grant insert on hookstead.live_deliveries to hookstead_receiver;
grant execute on function
    hookstead.delivery_id(uuid, uuid), hookstead.filter_match_us(jsonpath, jsonb),
    hookstead.default_retry_policy()
    to hookstead_receiver;

-- Worker: claims and finishes.
grant select on hookstead.sources, hookstead.subscriptions, hookstead.events, hookstead.live_deliveries
    to hookstead_worker;
grant update (
    state, state_reason, attempt_count, next_attempt_at, scheduled_at, last_attempt_at, lease_id,
    lease_expires_at, leased_by, deferred_until_limit, last_error_class
) on hookstead.live_deliveries to hookstead_worker;
grant insert on hookstead.done_deliveries, hookstead.attempts, hookstead.reports, hookstead.dead_letter_notices
    to hookstead_worker;
grant execute on function hookstead.default_retry_policy() to hookstead_worker;

-- Relay: turns outbox rows into events, schedules, reaps leases, ships reports.
grant select, delete on hookstead.outbox, hookstead.reports, hookstead.dead_letter_notices to hookstead_relay;
grant insert on hookstead.reports, hookstead.dead_letter_notices to hookstead_relay;
grant select (
    source_id, name, kind, tenant, schema_version, retired_schema_versions, report_event_type, disabled_at
) on hookstead.sources to hookstead_relay;
grant select (
    subscription_id, name, tenant, source_id, event_type_patterns, payload_filter, retry_policy,
    paused_until, disabled_at
) on hookstead.subscriptions to hookstead_relay;
grant insert, select (source_id, external_event_id, event_id) on hookstead.event_keys to hookstead_relay;
grant insert on hookstead.events to hookstead_relay;
grant select, insert, update (
    state, state_reason, next_attempt_at, scheduled_at, lease_id, lease_expires_at, leased_by, last_error_class
) on hookstead.live_deliveries to hookstead_relay;
grant insert on hookstead.done_deliveries, hookstead.attempts to hookstead_relay;
grant execute on function
    hookstead.delivery_id(uuid, uuid), hookstead.filter_match_us(jsonpath, jsonb),
    hookstead.default_retry_policy(), hookstead.partition_days_ahead(date)
    to hookstead_relay;

-- Maintenance: makes partitions, ends deduplication windows and quarantine.
grant select, delete on hookstead.event_keys to hookstead_maintenance;
grant select (quarantine_id, source_id, received_at, expires_at, reason), delete
    on hookstead.quarantine to hookstead_maintenance;
grant select (delivery_id, event_id, subscription_id, state, created_at)
    on hookstead.live_deliveries to hookstead_maintenance;
grant execute on function
    hookstead.ensure_partitions(date, integer), hookstead.partition_days_ahead(date),
    hookstead.day_start_id(date)
    to hookstead_maintenance;

-- Admin: configuration, looking, re-arming, the audit log. Removing a source or a
-- subscription disables it; nothing here is deleted.
grant select, insert, update on hookstead.sources, hookstead.subscriptions, hookstead.replays to hookstead_admin;
grant select on hookstead.events, hookstead.event_keys, hookstead.live_deliveries,
    hookstead.done_deliveries, hookstead.attempts, hookstead.outbox, hookstead.reports,
    hookstead.dead_letter_notices, hookstead.quarantine,
    hookstead.deliveries, hookstead.event_summaries, hookstead.attempt_summaries,
    hookstead.source_summaries, hookstead.subscription_summaries
    to hookstead_admin;
grant insert on hookstead.live_deliveries to hookstead_admin;
grant select, insert on hookstead.operator_actions to hookstead_admin;
grant execute on function
    hookstead.delivery_id(uuid, uuid), hookstead.day_start_id(date),
    hookstead.filter_match_us(jsonpath, jsonb), hookstead.like_patterns(text[]),
    hookstead.default_retry_policy(), hookstead.is_retry_policy(jsonb),
    hookstead.partition_days_ahead(date)
    to hookstead_admin;

-- Support: looks, without payloads, headers, addresses or secrets.
grant select on
    hookstead.deliveries, hookstead.event_summaries, hookstead.attempt_summaries,
    hookstead.source_summaries, hookstead.subscription_summaries
    to hookstead_support;

-- Publisher: nothing but the way to the function that publishes.
