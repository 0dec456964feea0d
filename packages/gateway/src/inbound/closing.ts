import { Server as NetServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { attempt } from 'diana-limiter/gateway'
import type { FastifyInstance } from 'fastify'
import type { GatewaySettings } from '../settings/gateway-settings.ts'

/** The name under which its errors are counted. */
const place = 'connections that are closed'
const sweepMs = 20
const idleMs = 250

/** What is told about how a gateway ends. */
export interface ClosingParts {
  readonly app: FastifyInstance
  readonly shutdown: () => GatewaySettings['shutdown']
  /** Tells callers to take further calls elsewhere, on connections that have words for it. */
  readonly announceClosing: () => void
  /** Ends connections without a call, and lets the others end with theirs. */
  readonly closeIdleConnections: () => void
  /** Ends connections that have no end of their own. */
  readonly closeTunnels: () => void
  /** How many there are. */
  readonly tunnels: () => number
  /** Cuts every connection, also those that have left HTTP. */
  readonly destroyConnections: () => void
}

/**
 * Ends in good order. No new connections are taken; on those that are there each answer is the last, so that callers
 * who keep them learn of it; what is idle is closed after a moment, and whatever takes too long is cut.
 */
export class Closing {
  readonly #parts: ClosingParts
  #hasBegun = false

  constructor(parts: ClosingParts) {
    this.#parts = parts
    parts.app.addHook('preClose', () => this.#drain())
  }

  get hasBegun(): boolean {
    return this.#hasBegun
  }

  async #drain(): Promise<void> {
    const { server } = this.#parts.app
    const { timeoutMs } = this.#parts.shutdown()
    this.#hasBegun = true
    if (!server.listening) return
    const begun = performance.now()
    let closed = false
    // the server's own close() would cut connections on which a call is just arriving
    NetServer.prototype.close.call(server, () => {
      closed = true
    })
    this.#parts.announceClosing()
    while (!closed) {
      const elapsed = performance.now() - begun
      if (elapsed >= idleMs) attempt(place, () => this.#parts.closeIdleConnections())
      if (elapsed >= timeoutMs) this.#parts.destroyConnections()
      else if (elapsed >= idleMs && (await this.#onlyTunnelsAreLeft())) attempt(place, () => this.#parts.closeTunnels())
      await pause(sweepMs)
    }
  }

  #onlyTunnelsAreLeft(): Promise<boolean> {
    const { app, tunnels } = this.#parts
    return new Promise(resolve => app.server.getConnections((_error, count) => resolve(count <= tunnels())))
  }
}
