/** Connections that send their headers byte by byte and never finish (slowloris). */
export const slowHeaders = {
  name: 'slow headers',
  connections: 300,
  steps: () => [
    { write: 'GET /slow HTTP/1.1\r\nHost: fuzz.example\r\n' },
    { dribble: 'X-A: b\r\n'.repeat(100), bytes: 1, everyMs: 200 },
  ],
}
