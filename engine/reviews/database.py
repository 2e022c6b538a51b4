"""What the reviews' database holds."""

from __future__ import annotations

from typing import Final

from engine.errors import ReviewError
from engine.reviews.decisions import same_author
from engine.util.sqlite import Schema

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE data_sets (
        number INTEGER PRIMARY KEY,
        fingerprint TEXT NOT NULL UNIQUE
    );
    CREATE TABLE decisions (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        data_set INTEGER NOT NULL REFERENCES data_sets (number),
        source TEXT NOT NULL,
        target TEXT NOT NULL,
        author TEXT NOT NULL,
        time TEXT NOT NULL,
        verdict TEXT NOT NULL CHECK (verdict IN ('accept', 'reject', 'skip', 'withdraw')),
        note TEXT NOT NULL DEFAULT '',
        run TEXT,
        csls REAL,
        probability REAL,
        click TEXT NOT NULL,
        place INTEGER NOT NULL,
        withdraws INTEGER UNIQUE REFERENCES decisions (number),
        UNIQUE (click, place),
        CHECK ((verdict = 'withdraw') = (withdraws IS NOT NULL))
    );
    CREATE INDEX decisions_by_pair ON decisions (data_set, source, target, author, number);
    CREATE INDEX decisions_by_author ON decisions (data_set, author, number);
    CREATE TRIGGER decisions_are_not_changed BEFORE UPDATE ON decisions BEGIN SELECT RAISE (ABORT, 'decisions are only added'); END;
    CREATE TRIGGER decisions_are_not_deleted BEFORE DELETE ON decisions BEGIN SELECT RAISE (ABORT, 'decisions are only added'); END;
    CREATE VIEW kept AS
        SELECT * FROM decisions AS one WHERE verdict <> 'withdraw'
        AND NOT EXISTS (SELECT 1 FROM decisions AS other WHERE other.withdraws = one.number);
    CREATE VIEW standing AS
        SELECT * FROM kept AS one WHERE NOT EXISTS (
            SELECT 1 FROM kept AS later
            WHERE later.data_set = one.data_set AND later.source = one.source AND later.target = one.target
            AND later.author = one.author AND later.number > one.number
        );
    CREATE TABLE leases (
        data_set INTEGER NOT NULL REFERENCES data_sets (number),
        source TEXT NOT NULL,
        target TEXT NOT NULL,
        author TEXT NOT NULL,
        until REAL NOT NULL,
        PRIMARY KEY (data_set, source, target)
    );
    """,
)
"""From each version of the schema to the next."""

SCHEMA: Final = Schema(
    what="the reviews",
    error=ReviewError,
    unharmed="earlier decisions are untouched",
    damaged="restore it from a backup",
    migrations=MIGRATIONS,
    application=0x44414D4E,
    functions={"same_author": same_author},
)
