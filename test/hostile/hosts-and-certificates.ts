import fc from 'fast-check'

/** A request of HTTP/1.1 or HTTP/2 that names hosts, by the name that its connection has asked for. */
export interface HostCall {
  /** The name of the TLS connection (SNI); undefined for none. */
  readonly sni: string | undefined
  readonly protocol: 'http/1.1' | 'h2'
  /** The target of HTTP/1.1; ignored by HTTP/2. */
  readonly target: string
  /** The values of Host. */
  readonly hosts: readonly string[]
  /** `:authority` of HTTP/2. */
  readonly authority: string | undefined
  readonly caller: string
  readonly forged: Readonly<Record<string, string>>
}

const names = ['a.test', 'b.test']
/** Spellings of one host, and texts in which some reader could find another one. */
const spellings = names.flatMap((name, index) => {
  const other = names[1 - index]!
  return [
    ...[name, name.toUpperCase(), `${name}.`, `${name}:443`, `${name}:1`, `${name}.:443`],
    ...[
      `${name}@${other}`,
      `${name}/${other}`,
      `${name},${other}`,
      `${name} ${other}`,
      `${name}:80:${other}`,
      `x.${name}`,
    ],
    ...[
      `${name}#${other}`,
      `${name}?${other}`,
      `${name}\\${other}`,
      `${name}%2e${other}`,
      `${name}%00.${other}`,
      `[${name}]`,
    ],
  ]
})
const host = fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...names) }, fc.constantFrom(...spellings))
const target = fc.oneof(
  { weight: 2, arbitrary: fc.constant('/x') },
  host.map(one => `https://${one}/x`),
  host.map(one => `http://${one}/x`),
  fc.constantFrom(
    '//a.test/x',
    'https:a.test/x',
    'HTTPS://B.TEST/x',
    'https://a.test@b.test/x',
    'https:///x',
    'a.test',
    'a.test:443',
  ),
)

const headersOfIdentity = [
  ...['client-cert', 'client-cert-chain', 'Client-Cert', 'client_cert', 'x-client-cert', 'x-forwarded-client-cert'],
  ...[
    'ssl-client-cert',
    'x-ssl-client-s-dn',
    'x-forwarded-host',
    'forwarded',
    'x-host',
    'x-original-host',
    'x-forwarded-server',
  ],
]
const forged = fc.dictionary(
  fc.constantFrom(...headersOfIdentity),
  fc.constantFrom('b.test', 'host=b.test', 'CN=billing', 'billing', ':Zm9yZ2Vk:', 'Subject="CN=billing"'),
  { maxKeys: 3 },
)

export function hostCalls(callers: readonly string[]): fc.Arbitrary<HostCall> {
  return fc.record({
    sni: fc.constantFrom(undefined, 'a.test', 'b.test', 'A.TEST', 'c.test', 'x.b.test'),
    protocol: fc.constantFrom('http/1.1' as const, 'h2' as const),
    target,
    hosts: fc.oneof({ weight: 4, arbitrary: host.map(one => [one]) }, fc.array(host, { maxLength: 2 })),
    authority: fc.oneof({ weight: 3, arbitrary: host }, fc.constant(undefined)),
    caller: fc.constantFrom(...callers),
    forged,
  })
}
