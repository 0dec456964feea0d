import { formatDuration } from '../../common/duration.ts'

const refused = 'onRefused: verdict => ({ status: 429, body: … })'
const always = 'is what Diana does: leave it out'
const noted = 'is not needed: leave it out'
const waits = "limit: '5/s', algorithm: 'leaky-bucket', whenFull: 'wait'"
const draft7 = "headers: 'draft-7'"
const shared = "store: 'redis://127.0.0.1:6379', or store: client"
const prefixed = "store: { redis: 'redis://127.0.0.1:6379', prefix: 'shop' }"

/**
 * Options of express-rate-limit, rate-limiter-flexible, @nestjs/throttler, @fastify/rate-limit, koa-ratelimit and bottleneck, and what to
 * write here; a remedy that begins with "is" says why there is nothing to write.
 */
const foreign: Readonly<Record<string, string>> = {
  ...forAll(['statusCode', 'rejected_code'], 'status: 429'),
  ...forAll(['handler', 'errorResponseBuilder', 'onLimitReached', 'onExceeded', 'onBanReach', 'throw'], refused),
  ...forAll(['errorMessage', 'response', 'responseOnLimit'], "message: 'Please try again later'"),
  ...forAll(['standardHeaders', 'enableDraftSpec', 'identifier'], draft7),
  ...forAll(['legacyHeaders'], "headers: 'legacy'"),
  ...forAll(['disableHeader', 'addHeaders', 'addHeadersOnExceeding', 'setHeaders'], "headers: 'none', or leave it out"),
  ...forAll(
    ['keyGenerator', 'getTracker', 'generateKey', 'key'],
    'by: request => …, a function that returns the name of the caller',
  ),
  ...forAll(['allowList', 'whitelist', 'allowlist'], "allow: '10.0.0.0/8', or skip: request => …"),
  ...forAll(['blacklist', 'denyList', 'denylist'], "deny: '203.0.113.0/24'"),
  ...forAll(['skipIf', 'ignoreUserAgents'], 'skip: request => …'),
  ...forAll(
    ['redis', 'storeClient', 'client', 'driver', 'db', 'datastore', 'storage', 'Redis', 'clientOptions', 'storeType'],
    shared,
  ),
  ...forAll(['keyPrefix', 'nameSpace', 'prefix'], prefixed),
  ...forAll(['groupId', 'name'], "id: 'login'"),
  ...forAll(['ipv6Subnet'], 'ipv6Prefix: 56'),
  ...forAll(['passOnStoreError', 'skipOnError'], "whenStoreDown: 'allow'"),
  ...forAll(['insuranceLimiter', 'rejectIfRedisNotReady'], "whenStoreDown: 'share', which is the default, or 'refuse'"),
  ...forAll(['requestWasSuccessful'], "countWhen: '400-599'"),
  ...forAll(['ban', 'blockDuration', 'exponentialBackoff', 'penalty'], "block: '10m'"),
  ...forAll(['execEvenly', 'execEvenlyMinDelayMs', 'minTime'], waits),
  ...forAll(['maxConcurrent'], "limit: 5, algorithm: 'concurrency'"),
  ...forAll(['highWater', 'timeout'], "whenFull: 'wait', queue: { size: 100, timeout: '5s' }"),
  ...forAll(['strategy'], "whenFull: 'refuse', which is the default, or 'wait'"),
  ...forAll(
    [
      'reservoir',
      'reservoirRefreshInterval',
      'reservoirRefreshAmount',
      'reservoirIncreaseInterval',
      'reservoirIncreaseAmount',
    ],
    "limit: '100/m'",
  ),
  ...forAll(['throttlers'], "limit: ['10/s', '100/m']"),
  ...forAll(['requestPropertyName'], 'verdictOf(request), which the same entry exports'),
  ...forAll(['inMemoryBlockOnConsumed', 'inMemoryBlockDuration', 'useRedisPackage', 'continueExceeding'], always),
  ...forAll(
    ['validate', 'hook', 'global', 'cache', 'tableName', 'dbName', 'trackDoneStatus', 'clearDatastore', 'Promise'],
    noted,
  ),
}

/** Says what to do instead of an option that other limiters have; undefined if none has it. */
export function foreignRemedy(name: string, given: object): string | undefined {
  const meant = limitMeant(name, given)
  if (meant !== undefined) return `write ${meant}`
  const remedy = Object.hasOwn(foreign, name) ? foreign[name] : undefined
  return remedy === undefined || /^is /.test(remedy) ? remedy && `it ${remedy}` : `write ${remedy}`
}

/** Returns the limit that names and numbers of other limiters mean: `windowMs: 900_000, max: 100` is `100/15m`. */
function limitMeant(name: string, given: object): string | undefined {
  if (!['max', 'points', 'windowMs', 'timeWindow', 'ttl', 'duration'].includes(name)) return undefined
  const { windowMs, timeWindow, ttl, duration, max, points, limit } = given as Readonly<Record<string, unknown>>
  const ms = windowMs ?? timeWindow ?? ttl ?? (typeof duration === 'number' ? duration * 1000 : undefined)
  const count = max ?? points ?? limit
  if (!isWhole(ms) || !isWhole(count) || ms === 0) return undefined
  return `limit: '${count}/${formatDuration(ms).replace(/^1(?=\D)/, '')}'`
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function forAll(names: readonly string[], remedy: string): Record<string, string> {
  return Object.fromEntries(names.map(name => [name, remedy]))
}
