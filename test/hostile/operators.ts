import fc from 'fast-check'

/** Texts that a page, a terminal, a log or a reader could take for something else. */
const odd = [
  ...[
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    "javascript:alert('1')",
    '{{7*7}}',
    '${7*7}',
    '</td>',
    '&lt;',
  ],
  ...[
    '\u001b[31mred\u001b[0m',
    '\u001b]0;title\u0007',
    '\r\nset-cookie: a=b',
    '\n{"at":1,"operation":"putDocument"}',
    '\u0000',
    '\b\b',
  ],
  ...[
    '\u202eresu',
    '\u2066x\u2069',
    '\u200b',
    '\ufeff',
    '\u2028',
    '\u0085',
    '\ud800',
    '\udfff',
    '\u{e0041}',
    'e\u0301',
  ],
  ...[
    '__proto__',
    'constructor',
    'toString',
    '../../etc/passwd',
    '%2e%2e%2f',
    '%00',
    '=1+1',
    '@SUM(1)',
    '-',
    ' ',
    'ann',
    'operator token',
  ],
] as const

/** Names, reasons, comments and keys that an operator or a viewer may send. */
export const oddTexts: fc.Arbitrary<string> = fc
  .array(fc.oneof(fc.constantFrom(...odd), fc.string({ maxLength: 8, unit: 'binary' })), { minLength: 1, maxLength: 4 })
  .map(parts => parts.join(''))

/** Other ways to write the method and the path of an operation. */
export function spellingsOf(
  method: string,
  path: string,
): { method: string; url: string; headers: Record<string, string> }[] {
  const plain = { method, url: path, headers: {} }
  const overrides = ['x-http-method-override', 'x-http-method', 'x-method-override']
  return [
    plain,
    ...overrides.flatMap(name =>
      ['GET', 'POST'].map(sent => ({ method: sent, url: path, headers: { [name]: method } })),
    ),
    ...[
      `${path}/`,
      `${path}?_method=${method}`,
      path.replace('/v1/', '/v1//'),
      path.replace('/v1/', '/v1/./'),
      `/${path}`,
    ].map(url => ({ ...plain, url })),
    ...[
      path.replace('/api/', '/API/'),
      path.replace('/v1/', '/v1%2f'),
      path.replace('/api', '/x/../api'),
      `${path};x`,
      `${path}%00`,
    ].map(url => ({ ...plain, url })),
    ...['HEAD', 'OPTIONS', 'PATCH'].map(other => ({ ...plain, method: other })),
  ]
}
