import type { SectionFollower } from './engine/engine.ts'
import { engineOf } from './engine/engine-of.ts'
import type { ForwardedBy } from './http/ip-address.ts'
import type { Limiter } from './limiter.ts'

export { assertRegularFile, fileFault, readRegularFile, readRegularFileSync } from './common/regular-file.ts'
export type { SectionFollower } from './engine/engine.ts'
export { overloadRetrySeconds } from './filters/answers/answer.ts'
export { canonicalAddress } from './http/address-bits.ts'
export { alternativeNames, verifiedCertificate } from './http/client-certificate.ts'
export { countedPath } from './http/path.ts'
export { hasReadings, readingsOf } from './http/path-readings.ts'
export { markUnknownEnd } from './http/unknown-end.ts'
export { assertRules } from './reload/assert-rules.ts'
export { pluginsNamedIn } from './reload/plugin-names.ts'
export { type Extensions, importPlugins, mergeExtensions } from './reload/plugins.ts'

/** The rule document in force, as far as a server around the limiter reads it. Each value is the current one. */
export interface LiveDocument {
  /** The proxies that are trusted: how many, or their networks. */
  readonly trustProxy: number | readonly string[]
  /** The header in which trusted proxies name the caller. */
  readonly forwardedBy: ForwardedBy
  /** The caller's address, from the peer of the connection and the header that `forwardedBy` names. */
  addressOf(peer: string | undefined, forwarded: string | readonly string[] | undefined): string | undefined
  /** A section of the rule file, as its schema read it. */
  section(name: string): unknown
  /** Follows a section of the rule file: it changes together with the rules, or neither does. */
  followSection(name: string, follower: SectionFollower): void
}

/** The rule document that a limiter has in force. */
export function documentOf(limiter: Limiter): LiveDocument {
  const engine = engineOf(limiter)
  return {
    get trustProxy() {
      return engine.document.trustProxy
    },
    get forwardedBy() {
      return engine.document.forwardedBy
    },
    addressOf: (peer, forwarded) => engine.addressOf(peer, forwarded),
    section: name => engine.document.sections?.[name],
    followSection: (name, follower) => engine.followSection(name, follower),
  }
}
