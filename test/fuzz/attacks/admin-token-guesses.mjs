import { randomBytes } from 'node:crypto'

/** Guesses of the token of the admin API. */
export const adminTokenGuesses = {
  name: 'admin token guesses',
  connections: 8,
  port: 'admin',
  steps: () => [
    {
      write: `GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${randomBytes(16).toString('hex')}\r\n\r\n`,
      times: 20,
    },
    { pause: 300 },
    'close',
  ],
  judge: ({ statuses }) => (statuses.has('200') ? 'a guess was let in' : undefined),
}
