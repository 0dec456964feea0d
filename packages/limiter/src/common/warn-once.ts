/** The codes of the warnings. */
export type WarningCode =
  | 'DIANA_PROXY_NOT_TRUSTED'
  | 'DIANA_TRUSTS_EVERYONE'
  | 'DIANA_MOUNTED_TWICE'
  | 'DIANA_MOUNTED_LATE'
  | 'DIANA_MADE_OFTEN'
  | 'DIANA_FAILED'
  | 'DIANA_BACKGROUND_FAILED'
  | 'DIANA_NO_SUCH_RULE'
  | 'DIANA_ASYNC_FUNCTION'
  | 'DIANA_BAD_VALUE'
  | 'DIANA_HEADER_CASE'
  | 'DIANA_STORE_DOWN'
  | 'DIANA_STORE_NOT_CONNECTED'
  | 'DIANA_STORE_MISCONFIGURED'
  | 'DIANA_STORE_EVICTS'
  | 'DIANA_STORE_FUNCTIONS'
  | 'DIANA_STORE_LOST_COUNTS'
  | 'DIANA_COUNTS_APART'
  | 'DIANA_RESERVATION_IGNORED'
  | 'DIANA_CLOCK_STEPPED'
  | 'DIANA_WAIT_OVERDUE'
  | 'DIANA_RULES_REJECTED'
  | 'DIANA_SOURCE_FAILED'
  | 'DIANA_RULES_MISSING'
  | 'DIANA_LIMITS_AWAY'
  | 'DIANA_LIMIT_UNUSABLE'

/** Mistakes in how Diana is used that it can see while it runs, each with its remedy. */
const mistakes: Readonly<Record<WarningCode, string>> = {
  DIANA_PROXY_NOT_TRUSTED:
    'a call carries X-Forwarded-For or Forwarded, but trustProxy trusts no proxy, so all callers behind your proxy are ' +
    'counted as one caller: set trustProxy to the number of your proxies or to their networks; Express: trust proxy; ' +
    'Fastify: trustProxy',
  DIANA_TRUSTS_EVERYONE:
    'trustProxy trusts every address, so callers may choose the address that they are counted under: list the networks ' +
    'of your own proxies only',
  DIANA_MOUNTED_TWICE:
    'a filter met a call that a filter of the same limiter and the same rules had judged already; it is counted once: ' +
    'mount each filter once',
  DIANA_MOUNTED_LATE:
    'a filter met a call that was answered already, which is not judged any more: mount the filter before the handlers',
  DIANA_MADE_OFTEN:
    'rateLimit was called again with the same options, as in a handler, and each counts by itself: call it once',
  DIANA_FAILED: 'something failed while a call was decided',
  DIANA_BACKGROUND_FAILED:
    'Diana met an error of its own in the background; what caused it is dropped, and the rest goes on: report it to the ' +
    'maintainers with this text',
  DIANA_NO_SUCH_RULE:
    'a filter names a rule that is not there, so it limits nothing: add the rule, or correct the name',
  DIANA_ASYNC_FUNCTION:
    'a function that must return a value returned a promise, which is ignored: return the value itself, and look up ' +
    'what takes time before the filter',
  DIANA_BAD_VALUE:
    'a function returned a value that cannot identify a caller, which is ignored: return text, a number or undefined',
  DIANA_HEADER_CASE:
    'a call has headers with capital letters in their names, which no rule reads: pass the names in lower case',
  DIANA_STORE_DOWN:
    'the store cannot be asked, so each process counts by itself: start Redis or correct store; limiter.events.on("store") ' +
    'reports when it is back',
  DIANA_STORE_NOT_CONNECTED:
    'the node-redis client in store.redis is not connected, so each process counts by itself: await client.connect() ' +
    'before createLimiter()',
  DIANA_STORE_MISCONFIGURED: 'Redis cannot be used as it is configured, so each process counts by itself',
  DIANA_STORE_EVICTS:
    'Redis may evict counts when its memory is full, which frees callers of their limits: set maxmemory-policy to ' +
    'noeviction, and let Diana have a Redis of its own if others need eviction',
  DIANA_STORE_FUNCTIONS:
    'the user of Redis may not load or call functions, so each batch of calls costs Redis more: permit the commands fcall and ' +
    'function|load, or ignore this warning',
  DIANA_STORE_LOST_COUNTS:
    'the store has lost its counts, and the processes restore what they know: empty no store that Diana counts in, let Redis ' +
    'save to disk, and set maxmemory-policy to noeviction',
  DIANA_COUNTS_APART:
    'processes of another release use this Redis and count under other names, so that up to twice the limit may pass: end the old ' +
    'processes soon',
  DIANA_RESERVATION_IGNORED:
    'Redis has reservations of permits that cannot be read, which are ignored: let no other program write to keys with the prefix ' +
    'of Diana',
  DIANA_CLOCK_STEPPED:
    'the clock that calls are counted by has stepped, so callers at their limit may wait for up to one period longer (a step ' +
    'back) or be admitted one burst more (a step forward): let ntpd or chronyd slew that clock instead of setting it',
  DIANA_WAIT_OVERDUE:
    'a call that waited was not ended at its moment, and a timer of last resort ended it: this is a fault in Diana or in the timers ' +
    'of this process; please report it with the rule that the call waited for',
  DIANA_RULES_REJECTED: 'new rules are invalid, so the last valid ones stay in force: correct the document',
  DIANA_RULES_MISSING: 'the config center has no document of rules',
  DIANA_LIMITS_AWAY: 'the limits of single callers cannot be read, so the last ones stay: check limit.from',
  DIANA_LIMIT_UNUSABLE: 'the limit of a caller cannot be used, so they have the default: correct it',
  DIANA_SOURCE_FAILED: 'a source of rules cannot be read, so the last good ones stay',
}

const warned = new Set<string>()

/** Enough for any operator; more would be an attack of its own. */
const MAX_DETAILS = 100

/**
 * Warns the operator of a mistake, once per process: a warning per call would flood the log. With
 * a cause, once for each cause.
 */
export function warnOnce(code: WarningCode, detail?: string, cause = ''): void {
  const name = `${code} ${cause}`
  if (warned.has(name)) return
  warned.add(name)
  warn(code, detail)
}

/** A warning that is repeated, with how often it was due since it was last printed. */
interface Repeated {
  readonly printedAt: number
  times: number
}

const REPEAT_MS = 60_000
const repeated = new Map<string, Repeated>()

/** Warns of what every call meets until it is mended: at once, and then at most once a minute for each cause. */
export function warnWhile(code: WarningCode, detail: string, cause = '', now: number = performance.now()): void {
  const name = `${code} ${cause}`
  const last = repeated.get(name)
  if (last === undefined && repeated.size >= MAX_DETAILS) return
  if (last !== undefined && now - last.printedAt < REPEAT_MS) {
    last.times++
    return
  }
  repeated.set(name, { printedAt: now, times: 0 })
  const more = last?.times ?? 0
  warn(code, more === 0 ? detail : `${detail} (${more} more since then)`)
}

/** Warns once per process for each detail. */
export function warnOfEach(code: WarningCode, detail: string): void {
  const name = `${code} ${detail}`
  if (warned.has(name) || warned.size >= MAX_DETAILS) return
  warned.add(name)
  warn(code, detail)
}

function warn(code: WarningCode, detail: string | undefined): void {
  const message = detail === undefined ? mistakes[code] : `${mistakes[code]}: ${detail}`
  process.emitWarning(message, { type: 'DianaWarning', code })
}
