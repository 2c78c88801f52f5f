-- Marks deliveries as put into the queue, fairly: the first of each subscription,
-- then the second of each, and so on.
--
-- $1 how many. Four times as many are considered, so that another relay that holds
-- the first ones does not leave this one without work. Of one subscription no more
-- than that are looked at, and of many each only its share: all together twenty
-- times what is wanted.
--
-- $2 most of one subscription that stand in the queue at once: of one that only
-- fails ($3 failures in a row) a single one, of one with a rate limit two seconds'
-- worth. What is beyond would come back from every claim, in front of everybody else.
with due as materialized (
    select
        w.subscription_id,
        least($2::bigint, case when s.consecutive_failures >= $3::integer then 1
                               else 2 * s.rate_limit_per_s::bigint end) as most
    from hookstead.waiting_subscriptions w
    join hookstead.subscriptions s on s.subscription_id = w.subscription_id
    where w.next_attempt_at <= now()
      and s.disabled_at is null
      and s.destination_kind <> 'pull'
      and (s.paused_until is null or s.paused_until <= now())
),
share as materialized (
    select least(4 * $1::bigint, ceil(20.0 * $1::bigint / greatest(count(*), 1))::bigint) as most from due
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
        limit least(
            (select share.most from share),
            greatest(0, due.most - (
                select count(*)
                from (
                    select from hookstead.live_deliveries q
                    where q.subscription_id = due.subscription_id
                      and q.state = 'pending' and q.scheduled_at is not null
                    limit due.most
                ) q)))
    ) l
),
considered as materialized (
    select c.delivery_id, c.place, c.next_attempt_at
    from candidates c
    order by c.place, c.next_attempt_at
    limit 4 * $1::bigint
),
-- Row by row and in that order, each by its key and judged once it is locked. The
-- limit of one keeps the conditions out of the look-up: with them an index of what
-- waits would do as well, and where statistics are from an empty queue, that whole
-- index would be read for every row.
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
    where l.state = 'pending' and l.scheduled_at is null
    limit $1::bigint
)
update hookstead.live_deliveries d
set scheduled_at = now()
where d.delivery_id = any (array(select c.delivery_id from chosen c))
returning d.delivery_id, d.round, d.attempt_count + 1 as "attempt!"
