-- Marks deliveries anew that were put into the queue long ago and that nobody took:
-- their messages are lost, or stand far back.
--
-- $1 how many, $2 seconds in the queue after which one counts as lost. Subscriptions
-- that are paused or switched off are left out: whatever of theirs is in the queue
-- is not to be attempted now.
with lost as materialized (
    select q.subscription_id
    from hookstead.scheduled_subscriptions q
    join hookstead.subscriptions s on s.subscription_id = q.subscription_id
    where q.scheduled_at <= now() - $2::float8 * interval '1 second'
      and s.disabled_at is null
      and s.destination_kind <> 'pull'
      and (s.paused_until is null or s.paused_until <= now())
),
share as materialized (
    select least(4 * $1::bigint, ceil(20.0 * $1::bigint / greatest(count(*), 1))::bigint) as most from lost
),
candidates as materialized (
    select
        l.delivery_id, l.scheduled_at,
        row_number() over (partition by lost.subscription_id order by l.scheduled_at) as place
    from lost
    cross join lateral (
        select d.delivery_id, d.scheduled_at
        from hookstead.live_deliveries d
        where d.subscription_id = lost.subscription_id
          and d.state = 'pending' and d.scheduled_at is not null
          and d.scheduled_at <= now() - $2::float8 * interval '1 second'
        order by d.scheduled_at
        limit (select share.most from share)
    ) l
),
considered as materialized (
    select c.delivery_id
    from candidates c
    order by c.place, c.scheduled_at
    limit 4 * $1::bigint
),
-- As in dispatch_due.sql: each by its key, and judged once it is locked.
chosen as materialized (
    select l.delivery_id
    from considered c
    cross join lateral (
        select d.delivery_id, d.state, d.scheduled_at
        from hookstead.live_deliveries d
        where d.delivery_id = c.delivery_id
        limit 1
        for update skip locked
    ) l
    where l.state = 'pending' and l.scheduled_at <= now() - $2::float8 * interval '1 second'
    limit $1::bigint
)
update hookstead.live_deliveries d
set scheduled_at = now()
where d.delivery_id = any (array(select c.delivery_id from chosen c))
returning d.delivery_id, d.round, d.attempt_count + 1 as "attempt!"
