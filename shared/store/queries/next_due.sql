-- Seconds until the next delivery that waits becomes due; none where none waits.
-- What is paused becomes due with the end of its pause at the earliest.
--
-- $1 subscriptions to look at, at most: a parameter, so that the statement is
-- planned for the size that the queue has now.
select extract(epoch from min(greatest(w.next_attempt_at, s.paused_until)) - now())::float8 as wait_s
from (select * from hookstead.waiting_subscriptions limit $1::bigint) w
join hookstead.subscriptions s on s.subscription_id = w.subscription_id
where s.disabled_at is null and s.destination_kind <> 'pull'
