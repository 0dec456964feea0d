import fc from 'fast-check'

/** Parts of values that URL parsers, servers or proxies could take for syntax. */
const syntax = [
  ...[
    '..',
    '.',
    '%2e%2e',
    '%2E.',
    '.%2e',
    '%252e%252e',
    '\u2024\u2024',
    '\uff0e\uff0e',
    '\u3002',
    '...',
    '..;',
    '..%00',
  ],
  ...['/', '//', '\\', '%2f', '%5c', '\uff0f', '?', '#', '%3f', '%23', '&', '=', ';', ':', '@', '%40', '%'],
  ...['\r\n', '\n', '\t', '\u0000', '\u0085', '\u2028', ' ', '+', '\u00a0', '\ufeff', '\ud800', '\udc00', '{', '}'],
  ...['{account}', '${account}', '$&', "$'", '\u202e', '[', ']', '|', '`', '<', '>', '"', "'", '*', '(', ')', '!', '~'],
  ...['http:', 'https://', 'file:///etc/passwd', 'GET / HTTP/1.1', 'x'.repeat(129), 'x'.repeat(5000), 'ann', 'é', '😀'],
] as const

/** Values of a caller that try to lead a request to `elsewhere`, a host with a port, or out of the prefix of a template. */
export function callerValues(elsewhere: string): fc.Arbitrary<string> {
  const part = fc.oneof(
    fc.constantFrom(...syntax),
    fc.constantFrom(...[elsewhere, `//${elsewhere}`, `@${elsewhere}`, `http://${elsewhere}/`, `\\\\${elsewhere}`]),
  )
  return fc.array(part, { minLength: 1, maxLength: 5 }).map(parts => parts.join(''))
}

/** Addresses of limits in which a caller would choose the host, the port or the user, by the rules of the WHATWG URL parser. */
export const hostTemplates: readonly string[] = [
  ...[
    'https://{account}/',
    'https://{account}.plans.test/',
    'https://plans.test:{account}/',
    'https://plans.test{account}/',
  ],
  ...[
    'https:///{account}',
    'https:////{account}/x',
    'https://\\{account}',
    'https://\\/{account}',
    'https:///\\{account}/',
  ],
  ...['https://\t/{account}', 'https://\n{account}/', 'https://\r\n/{account}/', 'https://plans\t.test{account}/'],
  ...['https://{account}@plans.test/', 'https://user:{account}@plans.test/', 'https://user@plans.test/{account}'],
  ...['https:{account}', 'https:/{account}', 'https:\\\\{account}', 'HTTPS:///{account}', ' https:///{account}'],
  ...[
    'file:///{account}',
    'ftp://plans.test/{account}',
    'data:,{account}',
    '//{account}/',
    'gopher://plans.test/{account}',
  ],
]

/** Addresses of limits with a path in which `..` could be hidden from a check that splits it at `/` only. */
export const pathTemplates: readonly string[] = [
  ...[
    'https://plans.test/limits\\{account}',
    'https://plans.test\\limits\\{account}\\of',
    'https://plans.test/a/\t{account}',
  ],
  ...['https://plans.test/a/{account}\n', 'https://plans.test/a/\r{account}/b', 'https://plans.test/a/\\{account}'],
]

/** Headers of a token that name a key or a place of keys. */
export function tokenHeads(elsewhere: string): Readonly<Record<string, unknown>>[] {
  const places = [
    `http://${elsewhere}/keys`,
    `//${elsewhere}/keys`,
    'file:///dev/null',
    '/dev/null',
    '../../../../dev/null',
  ]
  const key = { kty: 'oct', k: '', kid: 'mine' }
  const heads = places.flatMap(place => [
    ...[{ jku: place }, { x5u: place }, { kid: place }, { kid: place, jku: place, x5u: place }],
    { jwk: { ...key, kid: place }, kid: place },
  ])
  return [
    ...heads.flatMap(head => ['none', 'None', 'HS256', 'ES256', 'RS256'].map(alg => ({ ...head, alg }))),
    ...[{ jwk: key }, { jwk: key, kid: 'mine' }, { x5c: ['MIIB'] }, { crit: ['jku'], jku: places[0] }, { zip: 'DEF' }],
    ...[{ kid: "' OR 1=1 --" }, { kid: '\u0000' }, { kid: '__proto__' }, { kid: ['a'] }, { alg: '__proto__' }],
  ].map(head => ({ alg: 'HS256', ...head }))
}

/** Documents of a config center that name places, files, modules or other sections. */
export function remoteDocuments(elsewhere: string): object[] {
  const rule = { id: 'each', by: 'account', limit: '5/h' }
  const from = (address: unknown) => ({ rules: [{ ...rule, limit: { from: address, default: '5/h' } }] })
  const url = `http://${elsewhere}`
  return [
    ...[
      `${url}/{account}`,
      `http://plans.test@${elsewhere}/{account}`,
      `file:///etc/passwd?{account}`,
      `//${elsewhere}/{account}`,
    ]
      .flatMap(address => [address, ` ${address}`, address.toUpperCase(), address.replace('{account}', '{ACCOUNT}')])
      .map(from),
    ...[
      `redis://${elsewhere}/{account}`,
      `rediss://${elsewhere}/{account}`,
      'function:each.limit.from',
      [`${url}/{account}`],
    ].map(from),
    ...[
      { remote: { http: `${url}/` } },
      { store: { redis: `redis://${elsewhere}` } },
      { plugins: [`${url}/plugin.mjs`] },
    ].map(section => ({ rules: [rule], ...section })),
    ...[
      { plugins: ['./plugin.mjs'] },
      { plugins: ['data:text/javascript,process.exit(9)'] },
      { jwt: { key: 'file:/etc/passwd' } },
    ].map(section => ({ rules: [rule], ...section })),
    ...[
      { identify: { account: 'ip' } },
      { trustProxy: true },
      { gateway: { routes: [{ to: url }] } },
      { extends: url },
    ].map(section => ({ rules: [rule], ...section })),
    ...[
      { algorithm: `${url}/a.mjs` },
      { algorithm: './a.mjs' },
      { by: 'file:/etc/passwd' },
      { cost: `${url}/cost` },
    ].map(part => ({
      rules: [{ ...rule, ...part }],
    })),
  ]
}

/** Values of `Location` that lead to another host by some reading of URLs. */
export function locations(elsewhere: string): string[] {
  const url = `http://${elsewhere}/`
  return [
    ...[url, `//${elsewhere}/`, `///${elsewhere}/`, `/\\${elsewhere}/`, `\\\\${elsewhere}\\`, `http:\\\\${elsewhere}`],
    ...[
      `HTTP://${elsewhere}`,
      `http:/${elsewhere}/`,
      `http://127.0.0.1@${elsewhere}/`,
      `\t${url}`,
      `ftp://${elsewhere}/`,
    ],
    ...[`https://${elsewhere}/`, 'file:///etc/passwd', 'data:text/plain,rules:', 'http://[', ''],
  ]
}
