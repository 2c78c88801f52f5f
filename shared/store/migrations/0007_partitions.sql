-- Day partitions of events, done_deliveries and attempts, always made together
-- so that the partitions of a day line up and can leave together.
set local role hookstead_owner;

-- Makes what is missing of `days` days from `from_day` (UTC) on and returns how
-- many partitions it made. A table is built beside its parent and then attached:
-- that locks out neither readers nor writers of the parent, which creating it as
-- a partition would. Runs as the owner, so that maintenance needs no right to
-- create anything else.
create function hookstead.ensure_partitions(from_day date, days integer)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    made integer := 0;
    parent text;
    part text;
    day date;
begin
    if from_day is null or days is null or days not between 1 and 400 then
        raise exception 'days must be between 1 and 400' using errcode = 'invalid_parameter_value';
    end if;
    -- Two maintainers at once take turns.
    perform pg_advisory_xact_lock(hashtextextended('hookstead.ensure_partitions', 0));
    for i in 0..days - 1 loop
        day := from_day + i;
        foreach parent in array array['events', 'done_deliveries', 'attempts'] loop
            part := format('%s_%s', parent, to_char(day, 'YYYYMMDD'));
            continue when to_regclass(format('hookstead.%I', part)) is not null;
            execute format('create table hookstead.%I (like hookstead.%I including all)', part, parent);
            execute format(
                'alter table hookstead.%I attach partition hookstead.%I for values from (%L) to (%L)',
                parent, part, hookstead.day_start_id(day), hookstead.day_start_id(day + 1));
            made := made + 1;
        end loop;
    end loop;
    return made;
end
$$;

-- Whole days, counted from `from_day` on, for which every table has its
-- partition: what the alarm on running out of partitions watches.
create function hookstead.partition_days_ahead(from_day date)
returns integer
language sql stable strict security definer
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(min(d.n), 400)::integer
    from generate_series(0, 400) as d (n)
    where exists (
        select
        from unnest(array['events', 'done_deliveries', 'attempts']) as p (parent)
        where not exists (
            select
            from pg_inherits i
            where i.inhparent = to_regclass('hookstead.' || p.parent)
              and i.inhrelid = to_regclass(
                  format('hookstead.%I', p.parent || to_char(from_day + d.n, '_YYYYMMDD')))
        )
    )
$$;
