import type { Call } from './call.ts'
import type { ReplayLimiter, ReplayOptions } from './create/replay-limiter.ts'
import { callOf, type PlainKey } from './decision/blocklist.ts'
import { endMatters } from './decision/quick-pass.ts'
import type { SectionFollower } from './engine/engine.ts'
import { engineOf } from './engine/engine-of.ts'
import type { ForwardedBy } from './http/ip-address.ts'
import type { Limiter } from './limiter.ts'
import type { RuleDocument } from './rules/rule.ts'
import type { Verdict } from './verdict.ts'

export { type RecordedValues, recordedValues } from './admin/recorded-values.ts'
export type { Envelope, Shape } from './algorithms/envelope.ts'
export { overloadRetrySeconds } from './answers/answer.ts'
export { attempt, type Repeated, repeat, visitAll } from './common/background.ts'
export { steadyMicroseconds } from './common/clock.ts'
export { countFault, faultCounts, reportFault, textOf } from './common/faults.ts'
export { assertRegularFile, fileFault, readRegularFile, readRegularFileSync } from './common/regular-file.ts'
export { StepRing } from './common/step-ring.ts'
export type { ReplayLimiter, ReplayOptions } from './create/replay-limiter.ts'
export { type LimitedCall, type LimitOfCall, limitOfCall } from './decision/check-options.ts'
export { type KeySet, readKeySet } from './dimensions/jwt/key-set.ts'
export { readToken, type Token } from './dimensions/jwt/token.ts'
export type { SectionFollower } from './engine/engine.ts'
export { canonicalAddress } from './http/address-bits.ts'
export { alternativeNames, verifiedCertificate } from './http/client-certificate.ts'
export { GrpcOutcome } from './http/grpc-outcome.ts'
export { type AddressReader, createAddressReader, createPeerTest } from './http/ip-address.ts'
export { countedPath } from './http/path.ts'
export { hasReadings, readingsOf } from './http/path-readings.ts'
export type { Timers } from './queue/timers.ts'
export { assertRules } from './reload/assert-rules.ts'
export { mergeExtensions } from './reload/extensions.ts'
export { pluginsNamedIn } from './reload/plugin-names.ts'
export { type Extensions, importPlugins } from './reload/plugins.ts'
export type { CompiledRule } from './rules/compile.ts'
export { fetchText, type Reply, type ReplyBounds, type TextRequest } from './sources/client/fetch-text.ts'

/** The rule document in force, as far as a server around the limiter reads it. Each value is the current one. */
export interface LiveDocument {
  /** The proxies that are trusted: how many, or their networks. */
  readonly trustProxy: number | readonly string[]
  /** The header in which trusted proxies name the caller. */
  readonly forwardedBy: ForwardedBy
  /** Returns the caller's address, from the peer of the connection and the header that `forwardedBy` names. */
  addressOf(peer: string | undefined, forwarded: string | readonly string[] | undefined): string | undefined
  /** Returns the time by which rules are counted, in microseconds since 1970. */
  nowUs(): number
  /** Returns a section of the rule file, as its schema read it. */
  section(name: string): unknown
  /** Follows a section of the rule file: it changes together with the rules, or neither does. */
  followSection(name: string, follower: SectionFollower): void
}

/** Returns the rule document that a limiter has in force. */
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
    nowUs: () => engine.now(),
    section: name => engine.document.sections?.[name],
    followSection: (name, follower) => engine.followSection(name, follower),
  }
}

/** Returns a limiter that decides recorded calls; see `ReplayLimiter`. The engine is loaded with the first of them. */
export async function createReplayLimiter(document: RuleDocument, options: ReplayOptions): Promise<ReplayLimiter> {
  const { createReplayLimiter: create } = await import('./create/replay-limiter.ts')
  return create(document, options)
}

/** Returns when a call was decided, in microseconds since 1970; undefined if the verdict does not say. */
export function decidedAtUs(verdict: Verdict): number | undefined {
  return (verdict as { decidedAt?: number }).decidedAt
}

/** Returns a call that a rule counts for a caller, by plain values of its dimensions; throws if there is no such rule. */
export function callByRule(limiter: Limiter, rule: string, who: PlainKey): Call {
  return callOf(engineOf(limiter).ruleNamed(rule), who)
}

/** Returns the ids of the rules that must know how calls end: those that hold places, and those that count by how calls end. */
export function rulesByEndings(limiter: Limiter): string[] {
  return engineOf(limiter).decider.rules.flatMap(({ rule }) => (endMatters(rule) ? [rule.id] : []))
}

/** True if a call was charged in advance, by a rule whose costs can be settled, and is not settled yet. */
export function isReserved(verdict: Verdict): boolean {
  return (verdict as { reservation?: number }).reservation !== undefined
}
export { classifyError } from './stores/store-error.ts'
