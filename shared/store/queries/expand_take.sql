-- The oldest outbox rows that nobody else is expanding, locked until the end of the
-- transaction.
--
-- $1 most rows, $2 most bytes of payload; one row comes whatever its size. Never by
-- "newer than the last one seen": a row of a transaction that commits late is found
-- like any other.
with locked as materialized (
    select o.outbox_id, o.expand_at, octet_length(o.payload) as bytes
    from hookstead.outbox o
    where o.expand_at <= now()
    order by o.expand_at
    limit $1::bigint
    for update skip locked
),
sized as (
    select
        l.outbox_id, l.expand_at,
        sum(l.bytes) over (order by l.expand_at, l.outbox_id) - l.bytes as bytes_before
    from locked l
)
select o.outbox_id, o.content_type, o.payload, now() as "now!"
from sized s
join hookstead.outbox o on o.outbox_id = s.outbox_id
where s.bytes_before < $2::bigint
order by s.expand_at, s.outbox_id
