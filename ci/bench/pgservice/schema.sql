-- One account is one row for one asset: its nonce and its balance are changed by one
-- statement. The primary keys are the only indexes.
create table account (
	name    text   not null,
	asset   text   not null,
	nonce   bigint not null default 0,
	balance bigint not null check (balance >= 0),
	primary key (name, asset)
) with (fillfactor = 70);

create table receipt (
	key      text        not null primary key,
	asked    bytea       not null,
	seq      bigint      not null generated always as identity (cache 1),
	at       timestamptz not null default clock_timestamp(),
	outcome  smallint    not null,
	expected bigint      not null default 0,
	sender   text        not null,
	receiver text        not null,
	asset    text        not null,
	amount   bigint      not null,
	nonce    bigint      not null,
	memo     text        not null
);

-- Outcomes: 0 moved, 1 insufficient funds, 2 nonce used, 3 nonce ahead (not kept),
-- 4 the key asked for something else, 5 look again (not kept), 6 a batch, whose transfers
-- have its key and their places in it.
create type result as (outcome smallint, replayed boolean, seq bigint, at timestamptz, expected bigint);

create function recall(k text, q bytea) returns result language plpgsql as $$
declare
	r receipt;
begin
	select * into r from receipt where key = k;
	if not found then
		return row(5, false, 0, now(), 0)::result;
	elsif r.asked <> q then
		return row(4, false, 0, now(), 0)::result;
	end if;
	return row(r.outcome, true, r.seq, r.at, r.expected)::result;
end $$;

-- transfer is the whole of one transfer in three statements. The key is taken first, so
-- that of two with one key the second waits for the first. Rows are changed in the
-- order of their names, so that no two wait for each other. What does not go raises
-- MN001, which undoes all of it: refuse then says why.
create function transfer(k text, q bytea, f text, t text, s text, a bigint, n bigint, m text)
returns result language plpgsql as $$
declare
	taken bigint;
	stamp timestamptz;
begin
	insert into receipt (key, asked, outcome, sender, receiver, asset, amount, nonce, memo)
		values (k, q, 0, f, t, s, a, n, m)
		on conflict (key) do nothing returning seq, at into taken, stamp;
	if taken is null then
		return recall(k, q);
	end if;
	if f < t then
		update account set balance = balance - a, nonce = n
			where name = f and asset = s and nonce = n - 1 and balance >= a;
		if not found then
			raise exception using errcode = 'MN001';
		end if;
	end if;
	update account set balance = balance + a where name = t and asset = s;
	if not found then
		insert into account (name, asset, balance) values (t, s, a)
			on conflict (name, asset) do update set balance = account.balance + a;
	end if;
	if f > t then
		update account set balance = balance - a, nonce = n
			where name = f and asset = s and nonce = n - 1 and balance >= a;
		if not found then
			raise exception using errcode = 'MN001';
		end if;
	end if;
	return row(0, false, taken, stamp, 0)::result;
end $$;

-- refuse takes its locks in the order of transfer: the key, then the account.
create function refuse(k text, q bytea, f text, t text, s text, a bigint, n bigint, m text)
returns result language plpgsql as $$
declare
	last  bigint;
	has   bigint;
	why   smallint;
	taken bigint;
	stamp timestamptz;
begin
	insert into receipt (key, asked, outcome, sender, receiver, asset, amount, nonce, memo)
		values (k, q, 5, f, t, s, a, n, m)
		on conflict (key) do nothing returning seq, at into taken, stamp;
	if taken is null then
		return recall(k, q);
	end if;
	select nonce, balance into last, has from account where name = f and asset = s for update;
	last := coalesce(last, 0);
	why := case when n > last + 1 then 3 when n <= last then 2 when coalesce(has, 0) < a then 1 else 5 end;
	if why in (1, 2) then
		update receipt set outcome = why, expected = last + 1 where key = k;
	else
		delete from receipt where key = k;
	end if;
	return row(why, false, taken, stamp, last + 1)::result;
end $$;

create type batched as (outcome smallint, replayed boolean, at timestamptz, seqs bigint[]);

create function recall_batch(k text, q bytea) returns batched language plpgsql as $$
declare
	r      receipt;
	theirs bigint[];
begin
	select * into r from receipt where key = k;
	if r.asked <> q then
		return row(4, false, now(), null)::batched;
	end if;
	select array_agg(seq order by i) into theirs
		from generate_series(1, r.amount) i join receipt on key = k || '#' || i;
	return row(r.outcome, true, r.at, theirs)::batched;
end $$;

-- batch is transfers of one transaction, all or nothing, in order. All rows are locked
-- first, in the order of their names.
create function batch(k text, q bytea, f text[], t text[], s text[], a bigint[], n bigint[], m text[])
returns batched language plpgsql as $$
declare
	stamp timestamptz;
	taken bigint;
	seqs  bigint[] := array_fill(0::bigint, array[cardinality(f)]);
begin
	insert into receipt (key, asked, outcome, sender, receiver, asset, amount, nonce, memo)
		values (k, q, 6, '', '', '', cardinality(f), 0, '')
		on conflict (key) do nothing returning at into stamp;
	if stamp is null then
		return recall_batch(k, q);
	end if;
	perform from account where name = any(f || t) and asset = any(s) order by name, asset for update;
	for i in 1 .. cardinality(f) loop
		insert into receipt (key, asked, at, outcome, sender, receiver, asset, amount, nonce, memo)
			values (k || '#' || i, q, stamp, 0, f[i], t[i], s[i], a[i], n[i], m[i]) returning seq into taken;
		seqs[i] := taken;
		update account set balance = balance - a[i], nonce = n[i]
			where name = f[i] and asset = s[i] and nonce = n[i] - 1 and balance >= a[i];
		if not found then
			raise exception using errcode = 'MN001';
		end if;
		update account set balance = balance + a[i] where name = t[i] and asset = s[i];
		if not found then
			insert into account (name, asset, balance) values (t[i], s[i], a[i])
				on conflict (name, asset) do update set balance = account.balance + a[i];
		end if;
	end loop;
	return row(6, false, stamp, seqs)::batched;
end $$;

-- Usage events are rows, which a query sums. The primary key is the only index.
create table usage_event (
	source    text        not null,
	id        text        not null,
	at        timestamptz not null,
	dimension text        not null,
	labels    text        not null,
	value     bigint      not null,
	primary key (source, id)
);
