import { type Call, lazy } from '../call.ts'
import { valueNow } from '../common/promises.ts'
import { warnOnce } from '../common/warn-once.ts'
import type { LimitedCall, LimitOfCall } from '../decision/check-options.ts'
import { wholeAddress } from '../http/address-bits.ts'
import { addressPast, lastAddress, parseNetwork } from '../http/ip-address.ts'
import type { RuleDocument } from '../rules/rule.ts'
import type { Filter } from './filter.ts'
import type { FrameworkProxies } from './frameworks/framework.ts'
import { pathBehindHost, queryOf, spelledPath } from './frameworks/spelled-path.ts'
import type { FoundValues } from './one-line/request-functions.ts'
import { report } from './report.ts'

/** The document that was checked last; rules change rarely. */
let knownDocument: Filter<never, never>['trust']['document'] | undefined

/** A request of any framework as a call. Fields that no rule needs are never computed. */
export class RequestCall<Request> implements LimitedCall {
  attributes: Call['attributes']
  body: Call['body']
  /** The values that functions of the application have found for the request, if the filter has any. */
  found: FoundValues | undefined
  readonly #filter: Filter<Request, never>
  /** The framework's own. */
  readonly request: Request
  #headers: Call['headers']
  #path: string | undefined
  #ip: string | undefined
  #knowsIp = false

  constructor(filter: Filter<Request, never>, request: Request) {
    this.#filter = filter
    this.request = request
    this.attributes = undefined
    this.body = undefined
    this.found = undefined
  }

  get ownLimit(): LimitOfCall | undefined {
    return this.found?.limit
  }

  get method(): string {
    return this.#filter.framework.method(this.request)
  }

  get headers(): Call['headers'] {
    this.#headers ??= this.#filter.framework.headers(this.request)
    return this.#headers
  }

  get path(): string {
    this.#path ??= this.#filter.framework.path(this.request)
    return this.#path
  }

  get otherPath(): string | undefined {
    const { framework } = this.#filter
    const path = pathBehindHost(framework.target(this.request))
    return path === undefined ? undefined : spelledBase(framework.base?.(this.request)) + path
  }

  get earlierPaths(): readonly string[] | undefined {
    const { framework } = this.#filter
    const original = framework.originalTarget?.(this.request)
    if (original === undefined) return undefined
    const target = framework.target(this.request)
    const base = framework.base?.(this.request) ?? ''
    if (original === target && base === '') return undefined
    const earlier = spelledPath(original)
    if (earlier === this.path) return undefined
    // a base that the call did not arrive with may be out of date
    return base === '' || earlier.endsWith(this.path) ? [earlier] : [earlier, spelledPath(target)]
  }

  get caseInsensitive(): boolean {
    const { options, framework } = this.#filter
    return options.caseSensitive === undefined ? framework.caseInsensitive(this.request) : !options.caseSensitive
  }

  get resource(): string | undefined {
    const { options, framework } = this.#filter
    const template = options.resource === 'path' ? undefined : framework.template(this.request)
    // a wildcard serves many things
    return template?.includes('*') ? undefined : template
  }

  get query(): string | undefined {
    const { framework } = this.#filter
    const query = queryOf(framework.target(this.request))
    if (query !== undefined || framework.originalTarget === undefined) return query
    return queryOf(framework.originalTarget(this.request))
  }

  get host(): string | undefined {
    const headers = this.headers
    // HTTP/2 has no Host
    const host = headers?.host ?? headers?.[':authority']
    return typeof host === 'string' ? host : host?.[0]
  }

  get clientCertificate(): Call['clientCertificate'] {
    return this.#filter.framework.clientCertificate?.(this.request)
  }

  get trustedPeer(): boolean {
    const { trust } = this.#filter
    return trust.isTrusted?.(this.#peer()) ?? false
  }

  get ip(): string | undefined {
    if (!this.#knowsIp) {
      this.#ip = this.#addressBy(this.headers)
      this.#knowsIp = true
    }
    return this.#ip
  }

  #addressBy(headers: Call['headers']): string | undefined {
    const { trust } = this.#filter
    const { document } = trust
    const proxies = document.statesProxies === true ? undefined : this.#proxiesOfFramework()
    if (document !== knownDocument) {
      knownDocument = document
      warnOfTrust(document)
    }
    if (proxies?.believes === 'everyone') warnOnce('DIANA_TRUSTS_EVERYONE')
    const isNobody = proxies === undefined ? document.trustProxy === 0 : proxies.believes === 'nobody'
    if (isNobody && isForwarded(headers)) warnOfUntrustedProxy()
    if (proxies?.believes === 'nobody') return wholeAddress(this.#peer())
    const { trusted, isTrusted } = proxies ?? {}
    if (trusted !== undefined) return lastAddress(trusted)
    const forwarded = headers?.[document.forwardedBy]
    if (isTrusted === undefined) return trust.addressOf(this.#peer(), forwarded)
    try {
      return addressPast(isTrusted, this.#peer(), forwarded, document.forwardedBy)
    } catch (error) {
      report(error, this.request, this.#filter, 'proxies')
      return wholeAddress(this.#peer())
    }
  }

  /** Reads the setting of the framework; a function of the application may be behind it. */
  #proxiesOfFramework(): FrameworkProxies | undefined {
    const { framework } = this.#filter
    try {
      return framework.proxies?.(this.request)
    } catch (error) {
      report(error, this.request, this.#filter, 'proxies')
      return undefined
    }
  }

  /** Reads the address; a function of the application that throws must not interrupt the decision: the call then has no address. */
  #peer(): string | undefined {
    const { framework } = this.#filter
    try {
      const peer: unknown = framework.peer(this.request)
      if (typeof peer === 'string') return peer
      // a promise is reported
      if (peer !== undefined) valueNow(peer, 'peer')
      return undefined
    } catch (error) {
      report(error, this.request, this.#filter, 'peer')
      return undefined
    }
  }
}

function spelledBase(base = ''): string {
  return base === '' ? '' : spelledPath(base)
}

function isForwarded(headers: Call['headers']): boolean {
  return headers?.['x-forwarded-for'] !== undefined || headers?.forwarded !== undefined
}

Object.defineProperty(RequestCall.prototype, lazy, { value: true })

/** Warns if a document trusts every address as a proxy: each caller could then choose their own address. */
export function warnOfTrust({ trustProxy }: Pick<RuleDocument, 'trustProxy'>): void {
  if (typeof trustProxy !== 'number' && trustProxy.some(isEveryAddress)) warnOnce('DIANA_TRUSTS_EVERYONE')
}

/** Warns that a proxy names the caller, and no proxy is trusted. */
export function warnOfUntrustedProxy(): void {
  warnOnce('DIANA_PROXY_NOT_TRUSTED')
}

/** True if a network holds half of all addresses or more, in either family. */
function isEveryAddress(text: string): boolean {
  const length = parseNetwork(text)?.length ?? 128
  return length <= 3 || length === 96 || length === 97
}

/** Returns a request as a call, for decisions that a filter does not make itself, such as those on messages of a WebSocket. */
export function callOfRequest<Request>(filter: Filter<Request, never>, request: Request): Call {
  return new RequestCall(filter, request)
}
