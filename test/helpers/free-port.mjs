import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

// Systems give ports above 32767 to connections, and to servers that ask for any port: one of those could be taken before the
// program that gets its number listens on it. Programs that name no port of their own in the range below use few of it.
const FIRST = 10_000
const LAST = 32_000
const given = new Set()

/** A port of this machine that nobody listens on, nor gets before it is used; each one is given once. */
export async function freePort() {
  for (;;) {
    const port = randomInt(FIRST, LAST)
    if (given.has(port)) continue
    const server = createServer()
    const listening = once(server.listen(port, '127.0.0.1'), 'listening')
    const isFree = await listening.then(
      () => true,
      () => false,
    )
    if (!isFree) continue
    given.add(port)
    server.close()
    await once(server, 'close')
    return port
  }
}
