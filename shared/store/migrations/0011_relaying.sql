-- What the relay and those who publish need.

-- The relay's statements read a queue that is empty one minute and long the next.
-- A plan that was kept from the empty one would read the long one whole, so each is
-- planned anew, from the sizes of the moment: half a millisecond for a statement
-- that runs a few times a second. Several databases of one server may be migrated
-- at once and write the same row: whoever meets another looks again.
do $$
begin
    for attempt in 1..20 loop
        exit when exists (
            select
            from pg_catalog.pg_db_role_setting c
            join pg_catalog.pg_roles r on r.oid = c.setrole
            where c.setdatabase = 0
              and r.rolname = 'hookstead_relay'
              and 'plan_cache_mode=force_custom_plan' = any (c.setconfig)
        );
        begin
            alter role hookstead_relay set plan_cache_mode = force_custom_plan;
        exception when internal_error or unique_violation or object_in_use or serialization_failure then
            if attempt = 20 then
                raise;
            end if;
        end;
    end loop;
end
$$;

set local role hookstead_owner;

-- When an outbox row is turned into an event: at once, and later again where that
-- failed for a reason that lies in the row. Such a row never holds up the others
-- and never disappears; the state says what the server objected to.
alter table hookstead.outbox
    add column expand_at timestamptz not null default now(),
    add column failures integer not null default 0,
    add column failure_sqlstate text,
    add constraint outbox_failures_range check (failures >= 0),
    add constraint outbox_failure_whole check (
        (failures > 0) = (failure_sqlstate is not null) and failure_sqlstate ~ '^[0-9A-Z]{5}$');
drop index hookstead.outbox_created_at_idx;
create index outbox_expand_at_idx on hookstead.outbox (expand_at);
create index outbox_failed_idx on hookstead.outbox (outbox_id) where failures > 0;

-- By subscription first: each is asked for what is due of its own, so that none
-- hides the others, whatever its backlog; and what belongs to one that is paused
-- or switched off is found without looking at anybody else's.
drop index hookstead.live_deliveries_due_idx;
drop index hookstead.live_deliveries_scheduled_idx;
create index live_deliveries_due_idx on hookstead.live_deliveries (subscription_id, next_attempt_at)
    where state = 'pending' and scheduled_at is null;
create index live_deliveries_scheduled_idx on hookstead.live_deliveries (subscription_id, scheduled_at)
    where state = 'pending' and scheduled_at is not null;

-- Each subscription that has deliveries waiting to be put into the queue, with the
-- time of the first. Jumps through the index from one to the next: the cost is one
-- look per row of the answer, however many deliveries there are.
create view hookstead.waiting_subscriptions with (security_barrier = true) as
with recursive waiting as (
    (
        select l.subscription_id, l.next_attempt_at
        from hookstead.live_deliveries l
        where l.state = 'pending' and l.scheduled_at is null
        order by l.subscription_id, l.next_attempt_at
        limit 1
    )
    union all
    select n.subscription_id, n.next_attempt_at
    from waiting
    cross join lateral (
        select l.subscription_id, l.next_attempt_at
        from hookstead.live_deliveries l
        where l.state = 'pending' and l.scheduled_at is null and l.subscription_id > waiting.subscription_id
        order by l.subscription_id, l.next_attempt_at
        limit 1
    ) n
)
select waiting.subscription_id, waiting.next_attempt_at from waiting;

-- The same for deliveries that are in the queue, with the time since which the
-- first is, and when that one was due.
create view hookstead.scheduled_subscriptions with (security_barrier = true) as
with recursive scheduled as (
    (
        select l.subscription_id, l.scheduled_at, l.next_attempt_at
        from hookstead.live_deliveries l
        where l.state = 'pending' and l.scheduled_at is not null
        order by l.subscription_id, l.scheduled_at
        limit 1
    )
    union all
    select n.subscription_id, n.scheduled_at, n.next_attempt_at
    from scheduled
    cross join lateral (
        select l.subscription_id, l.scheduled_at, l.next_attempt_at
        from hookstead.live_deliveries l
        where l.state = 'pending' and l.scheduled_at is not null
          and l.subscription_id > scheduled.subscription_id
        order by l.subscription_id, l.scheduled_at
        limit 1
    ) n
)
select scheduled.subscription_id, scheduled.scheduled_at, scheduled.next_attempt_at from scheduled;

-- The report on an attempt, or with attempt 0 on the end of a round without one:
-- the start of SHA-256('report' || delivery || round || attempt), marked as UUID
-- version 8. The same facts give the same id.
create function hookstead.report_id(delivery_id uuid, round integer, attempt integer)
returns uuid
language sql immutable strict parallel safe
as $$
    select pg_catalog.encode(
        set_bit(set_bit(set_bit(set_bit(set_bit(set_bit(
            substring(
                sha256('\x7265706f7274'::bytea || uuid_send(delivery_id) || int4send(round) || int4send(attempt)),
                1, 16),
            55, 1), 54, 0), 53, 0), 52, 0),
            71, 1), 70, 0),
        'hex')::uuid
$$;

-- Ends at most so many pending deliveries of subscriptions that are switched off.
-- An attempt under way is left alone: if it does not end its delivery, the next
-- call does. Runs as the owner because nobody else may delete from the queue.
create function hookstead.cancel_disabled(most integer)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    cancelled integer;
begin
    -- Locked, so that whoever switches one on waits, and then sees what was cancelled.
    with off as materialized (
        select s.subscription_id
        from hookstead.subscriptions s
        where s.disabled_at is not null
          and s.subscription_id in (
              select w.subscription_id from hookstead.waiting_subscriptions w
              union all
              select q.subscription_id from hookstead.scheduled_subscriptions q)
        order by s.subscription_id
        for share of s
    ),
    candidates as materialized (
        select c.delivery_id
        from off
        cross join lateral (
            (
                select w.delivery_id
                from hookstead.live_deliveries w
                where w.subscription_id = off.subscription_id
                  and w.state = 'pending' and w.scheduled_at is null
                limit most
            )
            union all
            (
                select q.delivery_id
                from hookstead.live_deliveries q
                where q.subscription_id = off.subscription_id
                  and q.state = 'pending' and q.scheduled_at is not null
                limit most
            )
        ) c
        limit most
    ),
    -- Each by its key, and judged once it is locked. The limit of one keeps the
    -- condition out of the look-up, so that no other index is read for it.
    ended as materialized (
        select l.*
        from (select c.delivery_id from candidates c order by c.delivery_id) c
        cross join lateral (
            select d.*
            from hookstead.live_deliveries d
            where d.delivery_id = c.delivery_id
            limit 1
            for update skip locked
        ) l
        where l.state = 'pending'
    ),
    gone as (
        delete from hookstead.live_deliveries l
        where l.delivery_id = any (array(select e.delivery_id from ended e))
    ),
    archived as (
        insert into hookstead.done_deliveries (
            delivery_id, event_id, subscription_id, created_at, last_attempt_at, replay_id, round,
            attempt_count, attempt_budget, filter_match_us, state, state_reason, last_error_class,
            ordering_key, policy)
        select
            e.delivery_id, e.event_id, e.subscription_id, e.created_at, e.last_attempt_at, e.replay_id,
            e.round, e.attempt_count, e.attempt_budget, e.filter_match_us, 'cancelled',
            'subscription_disabled', e.last_error_class, e.ordering_key, e.policy
        from ended e
    ),
    reported as (
        insert into hookstead.reports (
            report_id, schema_version, instance_id, job_id, status, attempt_count, duration_ms,
            error_class, processed_at, provider, event_type)
        select
            hookstead.report_id(e.delivery_id, e.round, 0), 1, i.instance_id, e.delivery_id,
            'cancelled', e.attempt_count, null, null, now(), s.kind,
            case when s.kind is not null then v.event_type end
        from ended e
        cross join hookstead.installation i
        left join hookstead.events v on v.event_id = e.event_id
        left join hookstead.sources s on s.source_id = v.source_id and s.report_event_type
        where i.reporting_since is not null
    )
    select count(*) into cancelled from ended;
    return cancelled;
end
$$;

-- Announces an event: an outbox row in the caller's own transaction, and nothing
-- besides. Returns the row's id. docs/outbox.md is the manual. It never notifies:
-- transactions that do commit one after another.
create function hookstead.publish_raw(
    event_type text,
    body bytea,
    content_type text,
    source text default 'app',
    aggregate_type text default 'event',
    aggregate_id text default null,
    tenant text default null,
    idempotency_key text default null,
    occurred_at timestamptz default now(),
    cause_event_id uuid default null,
    schema_version text default null
)
returns uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    new_id uuid := gen_random_uuid();
    producer record;
    problem text;
begin
    select s.source_id, s.kind, s.allowed_event_types, s.tenant, s.schema_version,
        s.retired_schema_versions, s.disabled_at
    into producer
    from hookstead.sources s
    where s.name = source;

    problem := case
        when source = 'hookstead'
            then 'reserved_source: events of this source are announced by Hookstead alone'
        when producer.source_id is null
            then 'unknown_source: there is no source of this name'
        when producer.kind <> 'outbox'
            then 'not_an_outbox_source: the kind of this source is not outbox'
        when producer.disabled_at is not null
            then 'source_disabled: this source is switched off'
        when event_type is null or char_length(event_type) > 256 or btrim(event_type, E' \t\r\n') = ''
            then 'invalid_argument: event_type must have 1 to 256 characters and not be blank'
        when producer.allowed_event_types <> '{}'
            and not event_type like any (hookstead.like_patterns(producer.allowed_event_types))
            then 'event_type_not_allowed: the source does not take events of this type'
        when body is null
            then 'invalid_argument: payload and body must not be null'
        when octet_length(body) > 4194304
            then 'body_too_large: payload or body is larger than 4 MiB'
        when char_length(content_type) between 1 and 1024 is not true
            then 'invalid_argument: content_type must have 1 to 1024 characters'
        when char_length(aggregate_type) between 1 and 128 is not true
            then 'invalid_argument: aggregate_type must have 1 to 128 characters'
        when char_length(aggregate_id) not between 1 and 512
            then 'invalid_argument: aggregate_id must have 1 to 512 characters'
        when char_length(tenant) not between 1 and 128
            then 'invalid_argument: tenant must have 1 to 128 characters'
        when tenant <> producer.tenant
            then 'tenant_not_allowed: the source belongs to another tenant'
        when char_length(idempotency_key) > 512 or btrim(idempotency_key, E' \t\r\n') = ''
            then 'invalid_argument: idempotency_key must have 1 to 512 characters and not be blank'
        when occurred_at < '0001-01-01 00:00:00+00' or occurred_at >= '10000-01-01 00:00:00+00'
            then 'invalid_argument: occurred_at must lie in the years 1 to 9999'
        when char_length(schema_version) not between 1 and 64
            then 'invalid_argument: schema_version must have 1 to 64 characters'
        when schema_version = any (producer.retired_schema_versions)
            then 'retired_schema_version: the source does not write this schema version any more'
    end;
    if problem is not null then
        raise exception using
            message = problem,
            errcode = case split_part(problem, ':', 1)
                when 'unknown_source' then 'WH001'
                when 'source_disabled' then 'WH002'
                when 'not_an_outbox_source' then 'WH003'
                when 'reserved_source' then 'WH004'
                when 'event_type_not_allowed' then 'WH005'
                when 'retired_schema_version' then 'WH006'
                when 'tenant_not_allowed' then 'WH007'
                when 'body_too_large' then 'WH008'
                else 'WH009'
            end,
            hint = 'See docs/outbox.md.';
    end if;

    insert into hookstead.outbox (
        outbox_id, source_id, aggregate_type, aggregate_id, event_type, payload, content_type,
        schema_version, tenant, idempotency_key, occurred_at, cause_event_id)
    values (
        new_id, producer.source_id, aggregate_type, coalesce(aggregate_id, new_id::text), event_type,
        body, content_type, coalesce(schema_version, producer.schema_version),
        coalesce(tenant, producer.tenant), idempotency_key, coalesce(occurred_at, now()),
        cause_event_id);
    return new_id;
end
$$;

-- The same with a JSON payload.
create function hookstead.publish(
    event_type text,
    payload jsonb,
    source text default 'app',
    aggregate_type text default 'event',
    aggregate_id text default null,
    tenant text default null,
    idempotency_key text default null,
    occurred_at timestamptz default now(),
    cause_event_id uuid default null,
    schema_version text default null
)
returns uuid
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    select hookstead.publish_raw(
        event_type, convert_to(payload::text, 'UTF8'), 'application/json', source, aggregate_type,
        aggregate_id, tenant, idempotency_key, occurred_at, cause_event_id, schema_version)
$$;

grant execute on function
    hookstead.publish(text, jsonb, text, text, text, text, text, timestamptz, uuid, text),
    hookstead.publish_raw(text, bytea, text, text, text, text, text, text, timestamptz, uuid, text)
    to hookstead_publisher;

-- Setting a row aside, and taking one to send it on.
grant update (expand_at, failures, failure_sqlstate) on hookstead.outbox to hookstead_relay;
grant update (taken_until) on hookstead.reports, hookstead.dead_letter_notices to hookstead_relay;
grant execute on function hookstead.cancel_disabled(integer) to hookstead_relay;
grant select on hookstead.waiting_subscriptions, hookstead.scheduled_subscriptions
    to hookstead_relay, hookstead_admin;
