-- Stores one event, once, and owes it to every subscription that matches: one
-- statement, one round trip, one commit.
--
-- The key decides. Where it is already there, `new_key` is empty, so is everything
-- that selects from it, and the statement returns no row: a duplicate.
--
-- $19 is for how many seconds the relay leaves the deliveries to whoever asks for
-- their first attempts right after this commits; 0 where nobody does.
with incoming as materialized (
    select $10::text::jsonb as payload
),
new_key as (
    insert into hookstead.event_keys (source_id, external_event_id, event_id)
    values ($2, $3, $1)
    on conflict (source_id, external_event_id) do nothing
    returning event_id
),
new_event as (
    insert into hookstead.events (
        event_id, source_id, external_event_id, idempotency_key, event_type, tenant,
        schema_version, raw_body, content_type, payload, payload_error, headers,
        signature_verified, verified_with, occurred_at, received_at, region, cause_event_id
    )
    select
        new_key.event_id, $2, $3, $4, $5, $6,
        $7, $8, $9, incoming.payload, $11, $12::jsonb,
        $13, $14, $15, $16, $17, $18
    from new_key cross join incoming
),
matching as materialized (
    select
        s.subscription_id,
        hookstead.delivery_id($1, s.subscription_id) as delivery_id,
        s.retry_policy,
        hookstead.filter_match_us(s.payload_filter, incoming.payload) as filter_match_us
    from new_key
    cross join incoming
    cross join hookstead.subscriptions s
    where s.disabled_at is null
      and (s.source_id is null or s.source_id = $2)
      and (s.tenant is null or s.tenant = $6)
      and (s.event_type_patterns = '{}' or $5 like any (s.event_type_patterns))
),
new_deliveries as (
    insert into hookstead.live_deliveries (
        delivery_id, event_id, subscription_id, created_at, next_attempt_at,
        attempt_budget, filter_match_us, policy
    )
    select
        m.delivery_id, $1, m.subscription_id, $16,
        $16 + $19 * interval '1 second',
        1 + jsonb_array_length(m.retry_policy -> 'schedule_s'), m.filter_match_us,
        nullif(m.retry_policy, hookstead.default_retry_policy())
    from matching m
    where m.filter_match_us is not null
)
-- Read from what was to be inserted: whoever ingests may not read the queue.
select array(select m.delivery_id from matching m where m.filter_match_us is not null) as "deliveries!"
from new_key
