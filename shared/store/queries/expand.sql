-- Turns outbox rows into events, each once, and owes them to every subscription that
-- matches. The caller has locked the rows.
--
-- $1 outbox ids and $2 the ids of their events; $3 whether the body is the payload as
-- it stands; else $4 is the payload, $5 why there is none.
--
-- A row whose key its source has used before is a duplicate: it writes nothing and
-- goes. Which subscriptions match is decided as in ingest.sql.
with incoming as materialized (
    select
        i.event_id, o.outbox_id, o.source_id, o.event_type, o.tenant, o.schema_version,
        o.idempotency_key, o.occurred_at, o.cause_event_id, o.content_type, o.payload as raw_body,
        i.payload_error,
        coalesce(o.idempotency_key, o.outbox_id::text) as external_event_id,
        -- Where the producer named none there is nothing to keep in order.
        case when o.aggregate_id <> o.outbox_id::text
            then left(o.aggregate_type || '/' || o.aggregate_id, 512)
        end as ordering_key,
        case when i.body_fits then convert_from(o.payload, 'UTF8') else i.payload end::jsonb as payload
    from unnest($1::uuid[], $2::uuid[], $3::boolean[], $4::text[], $5::text[])
        as i (outbox_id, event_id, body_fits, payload, payload_error)
    join hookstead.outbox o on o.outbox_id = i.outbox_id
),
-- In one order, so that two relays with the same keys never wait in a circle.
new_key as (
    insert into hookstead.event_keys (source_id, external_event_id, event_id)
    select i.source_id, i.external_event_id, i.event_id
    from incoming i
    order by i.source_id, i.external_event_id
    on conflict (source_id, external_event_id) do nothing
    returning event_id
),
fresh as materialized (
    select i.* from new_key k join incoming i on i.event_id = k.event_id
),
new_event as (
    insert into hookstead.events (
        event_id, source_id, external_event_id, idempotency_key, event_type, tenant,
        schema_version, raw_body, content_type, payload, payload_error, headers,
        signature_verified, verified_with, occurred_at, received_at, region, cause_event_id
    )
    select
        i.event_id, i.source_id, i.external_event_id, i.idempotency_key, i.event_type, i.tenant,
        i.schema_version, i.raw_body, i.content_type, i.payload, i.payload_error, '{}',
        false, null, i.occurred_at, now(), null, i.cause_event_id
    from fresh i
),
matching as materialized (
    select
        i.event_id, i.ordering_key, s.subscription_id, s.retry_policy,
        hookstead.filter_match_us(s.payload_filter, i.payload) as filter_match_us
    from fresh i
    cross join hookstead.subscriptions s
    where s.disabled_at is null
      and (s.source_id is null or s.source_id = i.source_id)
      and (s.tenant is null or s.tenant = i.tenant)
      and (s.event_type_patterns = '{}' or i.event_type like any (s.event_type_patterns))
),
new_deliveries as (
    insert into hookstead.live_deliveries (
        delivery_id, event_id, subscription_id, created_at, next_attempt_at,
        attempt_budget, filter_match_us, ordering_key, policy
    )
    select
        hookstead.delivery_id(m.event_id, m.subscription_id), m.event_id, m.subscription_id, now(), now(),
        1 + jsonb_array_length(m.retry_policy -> 'schedule_s'), m.filter_match_us, m.ordering_key,
        nullif(m.retry_policy, hookstead.default_retry_policy())
    from matching m
    where m.filter_match_us is not null
    returning 1
),
gone as (
    delete from hookstead.outbox o
    where o.outbox_id = any (array(select i.outbox_id from incoming i))
)
select
    (select count(*) from incoming) as "rows!",
    (select count(*) from fresh) as "events!",
    (select count(*) from new_deliveries) as "deliveries!"
