-- Marks deliveries as put into the queue, fairly: the first of each subscription,
-- then the second of each, and so on.
--
-- $1 how many. Of one subscription at most so many are looked at that all of them
-- together stay within twenty times that; with many subscriptions each gets its
-- share. Four times as many are considered as are wanted, so that another relay
-- that holds the first ones does not leave this one without work.
with due as materialized (
    select w.subscription_id
    from hookstead.waiting_subscriptions w
    join hookstead.subscriptions s on s.subscription_id = w.subscription_id
    where w.next_attempt_at <= now()
      and s.disabled_at is null
      and (s.paused_until is null or s.paused_until <= now())
),
share as materialized (
    select least($1::bigint, ceil(20.0 * $1::bigint / greatest(count(*), 1))::bigint) as most from due
),
candidates as materialized (
    select
        l.delivery_id, l.next_attempt_at,
        row_number() over (partition by due.subscription_id order by l.next_attempt_at) as place
    from due
    cross join lateral (
        select d.delivery_id, d.next_attempt_at
        from hookstead.live_deliveries d
        where d.subscription_id = due.subscription_id
          and d.state = 'pending' and d.scheduled_at is null
          and d.next_attempt_at <= now()
        order by d.next_attempt_at
        limit (select share.most from share)
    ) l
),
considered as materialized (
    select c.delivery_id, c.place, c.next_attempt_at
    from candidates c
    order by c.place, c.next_attempt_at
    limit 4 * $1::bigint
),
-- Row by row and in that order, each by its key: whatever the statistics say, the
-- whole queue is not read for it.
chosen as materialized (
    select l.delivery_id
    from considered c
    cross join lateral (
        select d.delivery_id
        from hookstead.live_deliveries d
        where d.delivery_id = c.delivery_id and d.state = 'pending' and d.scheduled_at is null
        for update skip locked
    ) l
    limit $1::bigint
)
update hookstead.live_deliveries d
set scheduled_at = now()
where d.delivery_id = any (array(select c.delivery_id from chosen c))
returning d.delivery_id, d.round, d.attempt_count + 1 as "attempt!"
