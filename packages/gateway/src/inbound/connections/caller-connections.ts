import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { canonicalAddress } from 'diana-limiter/gateway'
import { isPeerGone } from '../../http/gone-peer.ts'
import type { CallerLimits } from '../../settings/gateway-settings.ts'
import { problemText } from '../problem.ts'

export interface CallerConnectionsOptions {
  /** Returns the highest numbers of connections, in total and of one caller; asked for every new one. */
  readonly limits: () => Pick<CallerLimits, 'connections' | 'connectionsPerCaller'>
  /** True if an address is that of a trusted proxy, behind which there are many callers. */
  readonly isProxy: (address: string) => boolean
  /** True if a refused connection can get the reason; one that begins with TLS cannot. */
  readonly tellsWhy: boolean
  /** Called for each refused connection. */
  readonly onRefused: (reason: 'connections' | 'connections-per-caller') => void
}

const refusedMs = 1000

/** The open connections to a gateway: a bounded number of each caller, and all of them end with the gateway. */
export class CallerConnections {
  readonly #options: CallerConnectionsOptions
  readonly #open = new Set<Socket>()
  readonly #counts = new Map<string, number>()

  constructor(options: CallerConnectionsOptions) {
    this.#options = options
  }

  /** Stands between a server and its own listeners: a connection over the bound never reaches them. */
  guard(server: Server): void {
    const listeners = server.listeners('connection') as ((this: Server, socket: Socket) => void)[]
    server.removeAllListeners('connection')
    server.on('connection', (socket: Socket) => {
      if (isPeerGone(socket, server)) socket.destroy()
      else if (this.#admit(socket)) for (const listener of listeners) listener.call(server, socket)
    })
  }

  get size(): number {
    return this.#open.size
  }

  destroyAll(): void {
    for (const socket of this.#open) socket.destroy()
  }

  #admit(socket: Socket): boolean {
    const { remoteAddress = '' } = socket
    const caller = canonicalAddress(remoteAddress) ?? remoteAddress
    const count = (this.#counts.get(caller) ?? 0) + 1
    // an error on a connection is followed by its end, and concerns nothing else
    socket.on('error', () => {})
    this.#open.add(socket)
    this.#counts.set(caller, count)
    socket.once('close', () => this.#remove(socket, caller))
    const { connections, connectionsPerCaller } = this.#options.limits()
    if (this.#open.size > connections)
      this.#refuse(socket, 503, 'This gateway has too many connections: try again later.')
    else if (count > connectionsPerCaller && !this.#options.isProxy(remoteAddress)) {
      this.#refuse(socket, 429, 'There are too many connections from this address: close some and try again.')
    } else return true
    return false
  }

  #remove(socket: Socket, caller: string): void {
    this.#open.delete(socket)
    const count = this.#counts.get(caller)! - 1
    if (count === 0) this.#counts.delete(caller)
    else this.#counts.set(caller, count)
  }

  #refuse(socket: Socket, status: 429 | 503, detail: string): void {
    this.#options.onRefused(status === 503 ? 'connections' : 'connections-per-caller')
    if (!this.#options.tellsWhy) {
      socket.destroy()
      return
    }
    // later bytes of the caller are read and dropped: unread bytes would reset the connection before the answer arrives
    socket.resume().end(problemText(status, detail, { 'Retry-After': '1' }))
    setTimeout(() => socket.destroy(), refusedMs).unref()
  }
}
