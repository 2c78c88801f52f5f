-- The projection's own table, in a schema of its own. Run it as the owner of your
-- database, with your own migrations.
create schema billing;

create table billing.subscriptions (
    subscription_id text primary key,
    customer_id text not null,
    status text not null,
    cancel_at_period_end boolean not null,
    -- The version of this row: the event that it was last written from, and the rank
    -- of that event among those of the same second.
    last_event_at timestamptz not null,
    last_event_rank integer not null
);

-- The worker signs in as its own role and needs the rights to this table as well.
grant usage on schema billing to hookstead_worker;
grant select, insert, update on billing.subscriptions to hookstead_worker;
