/** Calls of a rule whose queue they fill, and that leave while they wait. */
export const oneCallerFillsQueue = {
  name: 'one caller fills a queue',
  connections: 60,
  addresses: 1,
  steps: index => [
    { write: `GET /${index % 2 === 0 ? 'queued' : 'slots'}/a?answer=ok HTTP/1.1\r\nHost: fuzz.example\r\n\r\n` },
    { pause: index % 3 === 0 ? 50 : 600 },
    index % 3 === 0 ? 'reset' : 'close',
  ],
}
