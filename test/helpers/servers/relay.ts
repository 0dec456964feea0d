import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A TCP relay on loopback that can lose what passes through it without closing a connection. */
export interface Relay {
  readonly port: number
  /** Connections that were accepted so far. */
  readonly accepted: number
  /** Drops all bytes from now on: of open connections for good, of new ones as long as it is silent. */
  silence(isSilent: boolean): void
  /** Drops all bytes of the connections that are open now, as a NAT does that has forgotten them. */
  forgetConnections(): void
  close(): Promise<void>
}

interface Pair {
  readonly client: Socket
  readonly server: Socket
  isDead: boolean
}

export async function startRelay(authority: string): Promise<Relay> {
  const [host, targetPort] = authority.split(':')
  const pairs = new Set<Pair>()
  let isSilent = false
  let accepted = 0
  // a silent network hides the end of a connection too
  const listener: Server = createServer({ allowHalfOpen: true }, client => {
    accepted++
    const server = connect({ port: Number(targetPort), host: host!, allowHalfOpen: true })
    const pair: Pair = { client, server, isDead: isSilent }
    pairs.add(pair)
    const end = (): void => {
      client.destroy()
      server.destroy()
      pairs.delete(pair)
    }
    const pass = (from: Socket, to: Socket): void => {
      from.setNoDelay(true)
      from.on('data', data => {
        if (!pair.isDead) to.write(data)
      })
      from.on('end', () => {
        if (!pair.isDead) to.end()
      })
      from.on('error', end)
      from.on('close', () => {
        if (!pair.isDead) end()
      })
    }
    pass(client, server)
    pass(server, client)
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const forgetConnections = (): void => {
    for (const pair of pairs) pair.isDead = true
  }
  return {
    port: (listener.address() as AddressInfo).port,
    get accepted() {
      return accepted
    },
    silence(silent) {
      isSilent = silent
      if (silent) forgetConnections()
    },
    forgetConnections,
    async close() {
      listener.close()
      for (const { client, server } of pairs) {
        client.destroy()
        server.destroy()
      }
    },
  }
}
