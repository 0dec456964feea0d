import { once } from 'node:events'
import { connect, createServer } from 'node:net'

/** A way to a server that can be made slow, silent or shut. */
export async function startProxy(targetPort) {
  const pairs = new Set()
  let target = targetPort
  let delayMs = 0
  let isSilent = false

  function accept(client) {
    const server = connect(target, '127.0.0.1')
    const pair = { client, server, isDead: isSilent }
    pairs.add(pair)
    const end = () => {
      client.destroy()
      server.destroy()
      pairs.delete(pair)
    }
    for (const [from, to] of [
      [client, server],
      [server, client],
    ]) {
      from.setNoDelay(true)
      from.on('data', data => {
        // what a silent way has swallowed is gone, so it stays dead
        if (isSilent) pair.isDead = true
        if (pair.isDead) return
        if (delayMs === 0) to.write(data)
        else forwardLater(pair, to, data)
      })
      from.on('error', end)
      from.on('close', end)
    }
  }

  /** Bytes arrive in the order they were sent, however late. */
  function forwardLater(pair, to, data) {
    const key = to === pair.client ? 'toClient' : 'toServer'
    const at = Math.max(performance.now() + (typeof delayMs === 'function' ? delayMs() : delayMs), pair[key] ?? 0)
    pair[key] = at
    setTimeout(() => to.writable && to.write(data), at - performance.now())
  }

  let listener = createServer(accept).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address()
  const drop = () => {
    for (const { client, server } of pairs) {
      client.destroy()
      server.destroy()
    }
  }
  return {
    port,
    /** By a number of milliseconds, or by what a function says for each piece of data. */
    delay(ms) {
      delayMs = ms
    },
    silence(silent) {
      isSilent = silent
    },
    /** Where new connections lead; those that are open end. */
    lead(to) {
      target = to
      drop()
    },
    /** Shuts the door: who is connected is cut off, and who connects is refused. */
    async shut() {
      if (!listener) return
      listener.close()
      listener = undefined
      drop()
    },
    async open() {
      if (listener) return
      listener = createServer(accept).listen(port, '127.0.0.1')
      await once(listener, 'listening')
    },
    async close() {
      await this.shut()
    },
  }
}
