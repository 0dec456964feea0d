import { once } from '../../common/once.ts'
import { isMap } from '../is-map.ts'
import { show } from '../show.ts'

/** Option names of other rate limiters: the option of Diana, and how to write it. */
const foreign = /* @__PURE__ */ once(
  (): Readonly<Record<string, readonly (readonly [word: string, remedy: string])[]>> => ({
    ...forAll(['path', 'paths', 'url', 'route', 'location'], ['match', 'match: { path: /orders/** }']),
    ...forAll(['method', 'methods'], ['match', 'match: { method: POST }']),
    ...forAll(['host', 'hosts'], ['match', 'match: { host: api.example.com }']),
    ...forAll(
      [
        'max',
        'rate',
        'points',
        'requests',
        'window',
        'windowMs',
        'timeWindow',
        'duration',
        'period',
        'interval',
        'ttl',
      ],
      ['limit', 'limit: 100/m'],
    ),
    ...forAll(['average', 'tokens', 'tokensPerInterval', 'replenishRate'], ['limit', 'limit: 100/m']),
    ...forAll(['key', 'keyGenerator', 'zone', 'groupBy', 'per', 'dimensions', 'source'], ['by', 'by: ip']),
    ...forAll(
      ['status', 'statusCode', 'code', 'rejected_code', 'limit_req_status'],
      ['answer', 'answer: { status: 429 }'],
    ),
    ...forAll(['message', 'body', 'response', 'errorMessage'], ['answer', 'answer: { body: Please try again later }']),
    ...forAll(['standardHeaders', 'legacyHeaders', 'headers'], ['answer', 'answer: { headers: draft-7 }']),
    ...forAll(['skip', 'whitelist', 'allowList', 'allowlist', 'exempt'], ['allow', 'allow: 10.0.0.0/8']),
    ...forAll(['blacklist', 'denyList', 'denylist'], ['deny', 'deny: 203.0.113.0/24']),
    ...forAll(['nodelay'], ['whenFull', 'whenFull: refuse, which is the default']),
    ...forAll(['dryRun', 'dry_run', 'dryrun', 'limit_req_dry_run', 'shadow'], ['whenFull', 'whenFull: shadow']),
    ...forAll(['skipSuccessfulRequests'], ['countWhen', 'countWhen: failed']),
    ...forAll(['skipFailedRequests'], ['countWhen', 'countWhen: 200-399']),
    ...forAll(['weight', 'hits_addend'], ['cost', 'cost: 5']),
    ...forAll(['blockDuration', 'banDuration', 'ban'], ['block', 'block: { first: 10m, factor: 1 }']),
    ...forAll(['name'], ['id', 'id: login']),
    ...forAll(['disabled'], ['enabled', 'enabled: false']),
    ...forAll(['redis', 'redisUrl', 'url'], ['store', 'store: { redis: redis://127.0.0.1:6379 }']),
    ...forAll(['limits', 'rule', 'descriptors'], ['rules', 'rules: [{ id: all, limit: 100/m }]']),
    ...forAll(['trust_proxy', 'proxies', 'set_real_ip_from'], ['trustProxy', 'trustProxy: 1']),
    ...forAll(
      ['routes', 'upstream', 'listen', 'port', 'tls'],
      ['gateway', 'gateway: { routes: [{ to: http://127.0.0.1:3000 }] }'],
    ),
  }),
)

/** Says how to write an option that other rate limiters call by another name; undefined if Diana has none like it. */
export function hintForOption(word: string, known: readonly string[]): string | undefined {
  const hints = Object.hasOwn(foreign(), word) ? foreign()[word]! : []
  return hints.find(([target]) => known.includes(target))?.[1]
}

/** Says how to write a value that must be a map; undefined if that cannot be guessed. */
export function hintForValue(word: PropertyKey | undefined, value: unknown): string | undefined {
  const isText = typeof value === 'string'
  switch (word) {
    case 'match':
      if (isText && value.startsWith('/')) return `write match: { path: ${show(value)} }`
      return isText || Array.isArray(value) ? 'write match: { path: /orders/** }, or match: none' : undefined
    case 'answer':
      return typeof value === 'number' ? `write answer: { status: ${value} }` : 'write answer: { body: … }'
    case 'store':
      return isText ? 'write store: { redis: redis://127.0.0.1:6379 }' : undefined
    case 'queue':
      return typeof value === 'number' ? `write queue: { size: ${value} }` : 'write queue: { timeout: 1s }'
    case 'jwt':
      return isText ? 'write jwt: { key: env:JWT_KEY }' : undefined
    case 'identify':
      return isText ? `write identify: { account: ${show(value).slice(1, -1)} }` : undefined
    case 'rules':
      return isMap(value) ? 'write rules: [{ id: all, limit: 100/m }], or each rule behind a dash' : undefined
    default:
      return undefined
  }
}

function forAll(
  names: readonly string[],
  hint: readonly [word: string, remedy: string],
): Record<string, readonly (readonly [string, string])[]> {
  return Object.fromEntries(names.map(word => [word, [hint]]))
}
