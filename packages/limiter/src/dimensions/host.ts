import type { Call } from '../call.ts'
import { hostName } from '../http/host-name.ts'
import type { Dimension } from './dimension.ts'

/** The host called, in lower case, without port and final dot. */
export const host: Dimension = {
  name: 'host',
  argument: 'none',
  field: 'host',
  read: call => (call.host === undefined ? undefined : hostName(call.host)),
  ambiguityOf: () => namesTwoHosts,
}

/** True if a call carries two hosts: HTTP/2 has `:authority` in place of Host, and a call may carry both. */
function namesTwoHosts({ host: text, headers }: Call): boolean {
  const authority = headers?.[':authority']
  return typeof authority === 'string' && authority !== text && hostName(authority) !== hostName(text ?? '')
}
