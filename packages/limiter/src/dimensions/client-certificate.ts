import type { Call, ClientCertificate } from '../call.ts'
import { certificateParts } from '../http/client-certificate.ts'
import type { Dimension } from './dimension.ts'

/** A field of the verified client certificate: `client-certificate:cn`. No header can replace it. */
export const clientCertificate: Dimension = {
  name: 'client-certificate',
  argument: 'required',
  arguments: certificateParts,
  read: (call: Call, part) => call.clientCertificate?.[part as keyof ClientCertificate],
}
