/**
 * What is wrong with a store: it is `down`; it `refuses` to write, since it is full, a replica, or cannot save; it is
 * `misconfigured`, which no waiting mends; it has `lost` what it had counted, and is told again; or it failed in some other
 * way, which is a `bug` of somebody.
 */
export type TroubleKind = 'down' | 'refuses' | 'misconfigured' | 'lost' | 'bug'

/** Why a store cannot be asked, and what to do. */
export interface Cause {
  readonly code: StoreCode
  readonly kind: TroubleKind
  /** Of the message of an error. */
  readonly pattern: RegExp
  /** What happened, as a sentence without its full stop. */
  readonly what: string
  readonly remedy: string
}

export type StoreCode =
  | 'STORE_UNREACHABLE'
  | 'STORE_REFUSES_CONNECTIONS'
  | 'STORE_SILENT'
  | 'STORE_NAME_UNKNOWN'
  | 'STORE_SPEAKS_NO_TLS'
  | 'STORE_CLOSES_CONNECTIONS'
  | 'STORE_CERTIFICATE'
  | 'STORE_IS_NOT_REDIS'
  | 'STORE_PASSWORD'
  | 'STORE_PERMISSION'
  | 'STORE_DATABASE'
  | 'STORE_TOO_OLD'
  | 'STORE_BUSY'
  | 'STORE_FULL'
  | 'STORE_READONLY'
  | 'STORE_CANNOT_SAVE'
  | 'STORE_LOST_COUNTS'
  | 'STORE_TRANSACTION'
  | 'STORE_FAILED'

/** What is assumed of an error that nothing else is known of. */
export const UNREACHABLE: Omit<Cause, 'pattern'> = {
  code: 'STORE_UNREACHABLE',
  kind: 'down',
  what: 'Redis cannot be reached',
  remedy: 'start Redis, or correct host and port in store.redis',
}

export const UNKNOWN_BUG: Omit<Cause, 'pattern'> = {
  code: 'STORE_FAILED',
  kind: 'bug',
  what: 'Redis answered with an error that Diana does not know',
  remedy: 'look for the message in the log of Redis, and check that nothing else writes keys of this prefix',
}

export const FAILED_TRANSACTION: Omit<Cause, 'pattern'> = {
  code: 'STORE_TRANSACTION',
  kind: 'down',
  what: 'a transaction of the own store failed',
  remedy: 'mend what store.transact reports; conflicts with other transactions are to be tried again there',
}

export const LOST_COUNTS: Omit<Cause, 'pattern'> = {
  code: 'STORE_LOST_COUNTS',
  kind: 'lost',
  what: 'the store has lost its counts',
  remedy: 'empty no store that Diana counts in, let Redis save to disk, and set maxmemory-policy to noeviction',
}

/** The words that Redis, ioredis, node-redis and Node use; the first that fits is the cause. */
export const causes: readonly Cause[] = [
  {
    code: 'STORE_SILENT',
    kind: 'down',
    pattern: /^no answer (?:within|for) \d/,
    what: 'Redis does not answer in time',
    remedy: 'check the load of Redis and the network between; a longer store.timeout lets calls wait for a slow one',
  },
  {
    code: 'STORE_REFUSES_CONNECTIONS',
    kind: 'down',
    pattern: /\bECONNREFUSED\b/,
    what: 'Redis refuses connections',
    remedy: 'start Redis, or correct host and port in store.redis',
  },
  {
    code: 'STORE_NAME_UNKNOWN',
    kind: 'down',
    pattern: /\b(?:ENOTFOUND|EAI_AGAIN|EAI_NODATA|EAI_NONAME)\b/,
    what: 'the host name of Redis cannot be resolved',
    remedy: 'correct the host in store.redis, or check the name server',
  },
  {
    code: 'STORE_SPEAKS_NO_TLS',
    kind: 'misconfigured',
    pattern: /wrong version number|packet length too long|no answer to the TLS handshake|before secure TLS connection/,
    what: 'the port of Redis does not speak TLS',
    remedy: 'the port speaks no TLS: write redis:// instead of rediss://, or name the port with TLS',
  },
  {
    code: 'STORE_CERTIFICATE',
    kind: 'misconfigured',
    pattern: /certificate|\bCERT_|Hostname\/IP does not match/i,
    what: 'the certificate of Redis is not trusted',
    remedy: 'name the CA of Redis in NODE_EXTRA_CA_CERTS, and the host that the certificate is for in store.redis',
  },
  {
    code: 'STORE_CLOSES_CONNECTIONS',
    kind: 'down',
    pattern: /closes each connection|RESP type 21\b/,
    what: 'Redis closes connections before it answers',
    remedy:
      'the server closes connections before it answers: if the port speaks TLS, write rediss:// instead of redis://',
  },
  {
    code: 'STORE_IS_NOT_REDIS',
    kind: 'misconfigured',
    pattern: /Unknown RESP type|Protocol error, got/,
    what: 'something other than Redis answers at its address',
    remedy: 'what answers at this address is not Redis: correct host and port in store.redis',
  },
  {
    code: 'STORE_PASSWORD',
    kind: 'misconfigured',
    pattern: /^(?:ERR )?(?:NOAUTH|WRONGPASS)\b|invalid password|without any password configured/,
    what: 'Redis rejects the user or the password',
    remedy: 'correct user and password in store.redis',
  },
  {
    code: 'STORE_PERMISSION',
    kind: 'misconfigured',
    pattern: /^(?:ERR )?NOPERM\b|can't run this command or subcommand|permissions to (?:run|access)/,
    what: 'the user of Redis may not run the commands that Diana needs',
    remedy: 'let the user run the commands that docs/distributed.md lists, on the keys of the prefix',
  },
  {
    code: 'STORE_DATABASE',
    kind: 'misconfigured',
    pattern: /DB index is out of range|invalid DB index|SELECT is not allowed/i,
    what: 'Redis has no database of this number',
    remedy: 'name a database that Redis has at the end of store.redis, such as /0',
  },
  {
    code: 'STORE_TOO_OLD',
    kind: 'misconfigured',
    pattern:
      /unknown (?:redis )?command|after non[- ]deterministic commands|unknown subcommand|is not allowed from script/i,
    what: 'Redis does not know a command that Diana needs',
    remedy: 'use Redis 6.2 or later with scripts (EVAL) and without renamed commands',
  },
  {
    code: 'STORE_BUSY',
    kind: 'down',
    pattern: /^(?:ERR )?(?:LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b|max number of clients/,
    what: 'Redis is loading its data, runs a long script, or has no free connection',
    remedy: 'wait until Redis has started or finished its script',
  },
  {
    code: 'STORE_FULL',
    kind: 'refuses',
    pattern: /^(?:ERR )?OOM\b/,
    what: 'Redis is full and does not write',
    remedy: 'raise maxmemory of Redis',
  },
  {
    code: 'STORE_READONLY',
    kind: 'refuses',
    pattern: /^(?:ERR )?(?:-)?READONLY\b/,
    what: 'Redis is a replica and does not write',
    remedy: 'name the master in store.redis, or the Sentinels, who know it',
  },
  {
    code: 'STORE_CANNOT_SAVE',
    kind: 'refuses',
    pattern: /^(?:ERR )?(?:MISCONF|NOREPLICAS)\b/,
    what: 'Redis cannot save or replicate, and does not write',
    remedy: 'mend the disk or the replicas of Redis, or let it write without them',
  },
]
