-- 100,000 orders of 1,000 customers. There is an index for customers, and none for notes.
CREATE TABLE orders (id int, customer int, cents int, note text);
INSERT INTO orders
    SELECT i, i % 1000, i * 7 % 5000, 'note ' || md5(i::text) || md5((i + 1)::text)
    FROM generate_series(1, 100000) AS i;
CREATE INDEX ON orders (customer);
VACUUM ANALYZE orders;
