import { warnOnce } from '../common/warn-once.ts'
import { parseNetwork } from '../http/ip-address.ts'
import type { RuleDocument } from '../rules/rule.ts'

/** Warns if a document trusts every address as a proxy: each caller could then choose their own address. */
export function warnOfTrust({ trustProxy }: Pick<RuleDocument, 'trustProxy'>): void {
  if (typeof trustProxy !== 'number' && trustProxy.some(isEveryAddress)) warnOnce('DIANA_TRUSTS_EVERYONE')
}

/** Warns that a proxy names the caller, and no proxy is trusted. */
export function warnOfUntrustedProxy(): void {
  warnOnce('DIANA_PROXY_NOT_TRUSTED')
}

/** Whether a network holds half of all addresses or more, in either family. */
function isEveryAddress(text: string): boolean {
  const length = parseNetwork(text)?.length ?? 128
  return length <= 3 || length === 96 || length === 97
}
