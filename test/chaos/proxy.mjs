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
    const waiting = new Map([client, server].map(socket => [socket, new Delayed(socket)]))
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
        const lateMs = typeof delayMs === 'function' ? delayMs() : delayMs
        waiting.get(to).add(data, performance.now() + lateMs)
      })
      from.on('error', end)
      from.on('close', end)
    }
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

/** Bytes on their way to a socket: however late, they arrive in the order in which they were sent. */
class Delayed {
  #socket
  #pieces = []

  constructor(socket) {
    this.#socket = socket
  }

  add(data, at) {
    this.#pieces.push({ data, at })
    if (this.#pieces.length === 1) this.#forward()
  }

  #forward() {
    while (this.#pieces.length > 0) {
      const waitMs = this.#pieces[0].at - performance.now()
      if (waitMs > 0) {
        setTimeout(() => this.#forward(), waitMs)
        return
      }
      const { data } = this.#pieces.shift()
      if (this.#socket.writable) this.#socket.write(data)
    }
  }
}
