import type { Call } from '../call.ts'
import { warnOnce } from '../common/warn-once.ts'
import { parseNetwork } from '../http/ip-address.ts'
import type { RuleDocument } from '../rules/rule.ts'

/** The list that was looked at last; rules change seldom. */
let known: readonly string[] | undefined

/** Warns of proxies that nobody trusts, and of trust in everybody. */
export function warnAboutProxies({ trustProxy }: Pick<RuleDocument, 'trustProxy'>, headers: Call['headers']): void {
  if (typeof trustProxy === 'number') {
    if (trustProxy === 0 && isForwarded(headers)) warnOnce('DIANA_PROXY_NOT_TRUSTED')
  } else if (trustProxy !== known) {
    known = trustProxy
    if (trustProxy.some(isEverybody)) warnOnce('DIANA_TRUSTS_EVERYONE')
  }
}

function isForwarded(headers: Call['headers']): boolean {
  return headers?.['x-forwarded-for'] !== undefined || headers?.forwarded !== undefined
}

/** A network of half of all addresses or more, in either family. */
function isEverybody(text: string): boolean {
  const length = parseNetwork(text)?.length ?? 128
  return length <= 3 || length === 96 || length === 97
}
