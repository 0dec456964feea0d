const spellings = [
  '/limited/a',
  '//limited/a',
  '/limited//a',
  '/./limited/a',
  '/x/../limited/a',
  '/%6cimited/a',
  '/LIMITED/a',
  '/limited;v=1/a',
  '/limited/a/',
  '/limited/%61',
  '/x\\..\\limited/a',
  'http://other.example/limited/a',
  '/limited/a#f',
  '/limited/a%2e',
]

/** One caller who spells the path of a rule (3/s for each address) in many ways. */
export const pathSpellings = {
  name: 'path spellings',
  connections: 4,
  addresses: 1,
  steps: index => [
    { write: `GET ${spellings[index % spellings.length]} HTTP/1.1\r\nHost: fuzz.example\r\n\r\n`, times: 5 },
    { pause: 200 },
    'close',
  ],
  /** What was admitted beyond the rule, in so many seconds. */
  judge: ({ statuses, seconds }) => {
    const [passed, most] = [statuses.get('200') ?? 0, 3 * (Math.ceil(seconds) + 1)]
    return passed > most ? `${passed} calls passed a limit of ${most}` : undefined
  },
}
