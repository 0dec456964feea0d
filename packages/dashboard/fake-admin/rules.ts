import { readFileSync } from 'node:fs'

const schemaFile = new URL('../../../docs/diana.schema.json', import.meta.url)

export const schema: unknown = JSON.parse(readFileSync(schemaFile, 'utf8'))

const ruleIds = [
  'whole-system',
  'hello',
  'per-account',
  'per-device',
  'orders-written',
  'reports',
  'tighter-some-day',
  'sms',
]

const text = `# the rules of the fake admin API
rules:
  - id: whole-system
    limit: 1000/s
  - id: hello
    match: { path: /hello }
    by: account
    limit: 5/10s
`

/** The names that rules may use. */
export const names = {
  algorithms: [
    ...['sliding-window', 'fixed-window', 'sliding-log', 'token-bucket', 'leaky-bucket', 'warm-up'].map(name => {
      return { name, limit: 'rate' }
    }),
    ...['concurrency', 'adaptive'].map(name => ({ name, limit: 'count' })),
  ],
  dimensions: ['account', 'device', 'tenant', 'ip', 'resource', 'host', 'method'],
  namedDimensions: ['header', 'query', 'cookie'],
}

export const documents = { local: text, remote: 'rules:\n  - id: sms\n    limit: [1/m, 10/d]\n' }

export function ruleList(crowd: number): { readonly id: string }[] {
  const ids =
    crowd > 0 ? Array.from({ length: crowd }, (_, index) => `rule-${String(index).padStart(4, '0')}`) : ruleIds
  return ids.map((id, index) => ({
    id,
    origin: index % 4 === 3 ? 'etcd http://127.0.0.1:2379/diana/rules' : '/etc/diana/diana.yaml',
    where: index % 4 === 3 ? 'remote' : 'local',
    algorithm: ['sliding-window', 'token-bucket', 'fixed-window'][index % 3],
    limits:
      index % 4 === 2
        ? [
            { count: 20, periodMs: 60_000 },
            { count: 5, periodMs: 1000 },
          ]
        : [{ count: 100 * (index + 1), periodMs: 1000 }],
    by: index === 0 ? [] : index % 2 === 0 ? ['account'] : ['account', 'resource'],
    match: index % 2 === 0 ? {} : { path: '/orders/**', method: ['POST', 'PUT'] },
    whenFull: index % 7 === 6 ? 'shadow' : 'refuse',
    count: index % 2 === 0 ? 'distributed' : 'local',
    whenStoreDown: 'share',
    lease: 'auto',
    state: index % 7 === 6 ? 'shadow' : 'on',
    waiting: 0,
    text: `- id: ${id}\n  limit: 100/s\n`,
  }))
}
