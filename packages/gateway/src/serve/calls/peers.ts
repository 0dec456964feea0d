import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { ProxyTrust } from 'diana-limiter/filter'
import { createAddressReader, type LiveDocument } from 'diana-limiter/gateway'

/** The peers that may ask if the rule file does not say. */
const thisMachine: readonly string[] = ['127.0.0.0/8', '::1']

const maxProxies = 64
const maxKnown = 1000

/**
 * The proxies that may ask, and the addresses of the callers that they ask for: those of `trustProxy`; proxies of this machine if the
 * rule file trusts none.
 */
export class Peers implements ProxyTrust {
  readonly #document: LiveDocument
  /** The findings about peers, kept as long as the rule file trusts the same ones. */
  #known: { readonly of: unknown; readonly peers: Map<string, boolean> } | undefined
  #ofThisMachine: { readonly forwardedBy: string; readonly read: ProxyTrust['addressOf'] } | undefined

  constructor(document: LiveDocument) {
    this.#document = document
  }

  get document(): ProxyTrust['document'] {
    const { trustProxy, forwardedBy } = this.#document
    return { trustProxy: trustProxy === 0 ? thisMachine : trustProxy, forwardedBy }
  }

  readonly addressOf: ProxyTrust['addressOf'] = (peer, forwarded) => this.#reader()(peer, forwarded)

  /**
   * Returns the address of a caller that a proxy names in a message, beside what the caller has sent in the header that
   * `forwardedBy` names: as if the proxy had added it to that header, as proxies do that ask over HTTP.
   */
  callerOf(peer: string | undefined, named: string | undefined, sent: string | undefined): string | undefined {
    if (named === undefined) return this.addressOf(peer, sent)
    const item =
      this.#document.forwardedBy === 'forwarded' ? `for="${named.includes(':') ? `[${named}]` : named}"` : named
    return this.addressOf(peer ?? '127.0.0.1', sent === undefined ? item : `${sent}, ${item}`)
  }

  /** True if the other side of a connection may ask: a proxy that is trusted, or one that a verified certificate identifies. */
  mayAsk(socket: Socket): boolean {
    const { encrypted, authorized } = socket as TLSSocket
    return (encrypted === true && authorized === true) || this.isTrusted(socket.remoteAddress)
  }

  /** True if a peer is trusted; the other side of a Unix socket has no address, and is of this machine. */
  readonly isTrusted = (peer: string | undefined): boolean => {
    if (peer === undefined) return true
    const { trustProxy } = this.#document
    if (this.#known?.of !== trustProxy || this.#known.peers.size >= maxKnown) {
      this.#known = { of: trustProxy, peers: new Map() }
    }
    const known = this.#known.peers.get(peer)
    if (known !== undefined) return known
    const isTrusted = this.#test(peer)
    this.#known.peers.set(peer, isTrusted)
    return isTrusted
  }

  #test(peer: string): boolean {
    const entry = this.#document.forwardedBy === 'forwarded' ? 'for=192.0.2.1' : '192.0.2.1'
    const other = Array(maxProxies).fill(entry).join()
    return this.addressOf(peer, other) !== this.addressOf(peer, undefined)
  }

  #reader(): ProxyTrust['addressOf'] {
    const { trustProxy, forwardedBy, addressOf } = this.#document
    if (trustProxy !== 0) return addressOf
    if (this.#ofThisMachine?.forwardedBy !== forwardedBy) {
      this.#ofThisMachine = { forwardedBy, read: createAddressReader(thisMachine, forwardedBy) }
    }
    return this.#ofThisMachine.read
  }
}
