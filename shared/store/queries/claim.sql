-- Takes deliveries for one attempt each: a whole batch of messages, one commit.
--
-- $1 deliveries, $2 rounds, $3 attempts, $4 leases: one of each per message;
-- $5 who asks; $6 what a lease has beyond the attempt's timeout, in ms; $7 most
-- leases of one subscription at once; $8 failures in a row from which on a
-- subscription gets one lease at a time; $9 and $10 bound the events' ids; $11 whether
-- the same was asked before and had no answer.
with asked as materialized (
    select * from unnest($1::uuid[], $2::integer[], $3::integer[], $4::uuid[])
        with ordinality as a (delivery_id, round, attempt, lease_id, place)
),
-- What is as the message says, or was taken by this very call before its answer
-- was lost. A row that somebody else holds right now is theirs. Here and below, rows
-- of the queue are looked up one by one, by their key: a plan that was kept from an
-- empty queue must not read a long one whole.
found as materialized (
    select
        a.place, a.lease_id, a.delivery_id, l.live, (l.live).subscription_id, (l.live).state,
        coalesce(((l.live).policy ->> 'timeout_ms')::numeric,
                 (hookstead.default_retry_policy() ->> 'timeout_ms')::numeric) as timeout_ms
    from asked a
    cross join lateral (
        select free.live
        from (
            select l as live
            from hookstead.live_deliveries l
            where not $11 and l.delivery_id = a.delivery_id
            for update skip locked
        ) free
        union all
        -- Who asks again waits: its first call may still be under way, and commit.
        select waited.live
        from (
            select l as live
            from hookstead.live_deliveries l
            where $11 and l.delivery_id = a.delivery_id
            for update
        ) waited
    ) l
    where (l.live).round = a.round
      and ((l.live).state = 'pending' and (l.live).attempt_count = a.attempt - 1
               and (l.live).attempt_count < (l.live).attempt_budget
           or (l.live).state = 'leased' and (l.live).lease_id = a.lease_id)
),
busy as materialized (
    select l.subscription_id, count(*) as leases
    from hookstead.live_deliveries l
    where l.state = 'leased'
    group by l.subscription_id
),
-- The rate limits that matter here, locked: two batches must not spend the same.
limited as materialized (
    select
        s.subscription_id, s.rate_limit_per_s,
        greatest(s.rate_used_until, now()) as used_until,
        -- A second's worth may come at once.
        greatest(0, floor(s.rate_limit_per_s
            * (1 - extract(epoch from greatest(s.rate_used_until, now()) - now()))))::bigint as allowance
    from hookstead.subscriptions s
    where s.rate_limit_per_s is not null
      and s.subscription_id in (select f.subscription_id from found f where f.state = 'pending')
    order by s.subscription_id
    for no key update of s
),
decided as materialized (
    select
        f.place, f.lease_id, f.delivery_id, f.timeout_ms, f.subscription_id,
        case
            when f.state = 'leased' then 'held'
            when s.disabled_at is not null or s.destination_kind = 'pull' then 'refused'
            when s.paused_until > now() or f.nth > f.free or f.nth > l.allowance then 'postponed'
            else 'claimed'
        end as verdict,
        case
            -- In steps: a pause may end early.
            when s.paused_until > now()
                then least(s.paused_until, now() + interval '1 minute') + random() * interval '10 seconds'
            -- A moment: a destination that answers has room again by then. One that hangs
            -- is paused once its attempts have timed out.
            when f.nth > f.free then now() + (0.5 + 1.5 * random()) * interval '1 second'
            else l.used_until + (f.nth::float8 / l.rate_limit_per_s + 5 * random()) * interval '1 second'
        end as postponed_until
    from (
        select
            f.*,
            row_number() over (partition by f.subscription_id, f.state order by f.place) as nth,
            case when s.consecutive_failures >= $8 then 1 else $7 end - coalesce(b.leases, 0) as free
        from found f
        join hookstead.subscriptions s on s.subscription_id = f.subscription_id
        left join busy b on b.subscription_id = f.subscription_id
    ) f
    join hookstead.subscriptions s on s.subscription_id = f.subscription_id
    left join limited l on l.subscription_id = f.subscription_id
),
spent as (
    update hookstead.subscriptions s
    set rate_used_until = l.used_until + d.taken / l.rate_limit_per_s::float8 * interval '1 second'
    from limited l
    join (select d.subscription_id, count(*) as taken from decided d
          where d.verdict = 'claimed' group by d.subscription_id) d
        on d.subscription_id = l.subscription_id
    where s.subscription_id = l.subscription_id
),
postponed as (
    update hookstead.live_deliveries l
    set scheduled_at = null,
        next_attempt_at = (select d.postponed_until from decided d where d.delivery_id = l.delivery_id limit 1)
    where l.delivery_id = any (array(select d.delivery_id from decided d where d.verdict = 'postponed'))
    returning l.delivery_id, l.next_attempt_at
),
claimed as (
    update hookstead.live_deliveries l
    set state = 'leased', state_reason = null, attempt_count = l.attempt_count + 1,
        last_attempt_at = now(), leased_by = $5,
        (lease_id, lease_expires_at) = (
            select d.lease_id, now() + (d.timeout_ms::float8 + $6::float8) * interval '1 millisecond'
            from decided d where d.delivery_id = l.delivery_id limit 1)
    where l.delivery_id = any (array(select d.delivery_id from decided d where d.verdict = 'claimed'))
    returning l.*
),
mine as (
    select * from claimed
    union all
    -- As it was when it was locked, which may be later than this statement began.
    select (f.live).* from found f where f.state = 'leased'
)
select
    a.place as "place!", p.next_attempt_at as "postponed_until?",
    m.delivery_id as "delivery_id?", m.round as "round?", m.attempt_count as "attempt_count?",
    m.attempt_budget as "attempt_budget?", m.created_at as "created_at?",
    m.deferred_until_limit, m.lease_expires_at as "lease_expires_at?", m.policy,
    clock_timestamp() as "claimed_at!",
    e.event_id as "event_id?", e.source_id as "source_id?", src.name as "source_name?",
    src.kind as "source_kind?", src.report_event_type as "report_event_type?",
    e.external_event_id as "external_event_id?", e.event_type as "event_type?", e.tenant,
    e.schema_version as "schema_version?", e.content_type, e.raw_body as "raw_body?",
    e.occurred_at, e.received_at as "received_at?", e.cause_event_id,
    s.subscription_id as "subscription_id?", s.name as "subscription_name?",
    s.destination as "destination?", s.secret_current, s.secret_current_key,
    s.secret_previous, s.secret_previous_key, s.previous_until
from asked a
left join postponed p on p.delivery_id = a.delivery_id
left join mine m on m.delivery_id = a.delivery_id and m.lease_id = a.lease_id
left join hookstead.subscriptions s on s.subscription_id = m.subscription_id
-- One look by id per row: read as a join, the bounds would invite a scan of all
-- that lies between the oldest and the newest event of the batch.
left join lateral (
    select * from hookstead.events e
    where e.event_id = m.event_id and e.event_id between $9 and $10
    limit 1
) e on true
left join hookstead.sources src on src.source_id = e.source_id
order by a.place
