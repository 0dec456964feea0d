import { hostFault, listOf, textOf, z } from 'diana-limiter/schema'

/** The certificates that callers see, and the authorities that vouch for callers. */
export interface TlsSettings {
  /** At least one; the first is for callers who ask for no name that another one has. */
  readonly certificates: readonly CertificateSettings[]
  readonly clients?: ClientCertificateSettings | undefined
}

export interface CertificateSettings {
  readonly cert: string
  readonly key: string
  /** The names it is for; those in the certificate unless given. */
  readonly names?: readonly string[] | undefined
}

/** Callers who identify themselves by certificates. */
export interface ClientCertificateSettings {
  readonly ca: string
  readonly crl?: string | undefined
  /** True if callers without a certificate are refused. */
  readonly require: boolean
  /** True if services get the certificate in the header Client-Cert. */
  readonly forward: boolean
}

const file = z.string().min(1).max(4096)
const name = textOf(hostFault, 255)
const cert = file.describe('The certificate with its chain (PEM); read again when it changes.')
const key = file.describe('Its private key (PEM).')

const certificate = z.strictObject({
  cert,
  key,
  names: listOf(name, { min: 1, max: 1000 })
    .optional()
    .describe('Names such as shop.example.com or *.example.com; left out, those in the certificate.'),
})

const clients = z.strictObject({
  ca: file.describe("The certificates of the authorities that issue callers' certificates (PEM)."),
  crl: file.optional().describe('Certificates that these authorities have revoked (PEM), one list per authority.'),
  require: z.boolean().default(true).describe('false: callers without a certificate are served as well.'),
  forward: z
    .boolean()
    .default(false)
    .describe('true: services get the certificate in the header Client-Cert (RFC 9440).'),
})

/** Either one certificate, or several: callers choose one by the name that they ask for. */
export const tlsSchema: z.Schema<TlsSettings> = z
  .strictObject({
    cert: cert.optional(),
    key: key.optional(),
    certificates: z
      .array(certificate)
      .min(1)
      .max(1000)
      .optional()
      .describe('Several certificates, chosen by the name that a caller asks for (SNI); the first is the default.'),
    clients: clients.optional().describe('Callers who identify themselves by certificates; read at the start.'),
  })
  .superRefine(({ cert, key, certificates }, context) => {
    const message = faultOf(cert, key, certificates !== undefined)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })
  .transform(({ cert, key, certificates, clients }) => ({
    certificates: certificates ?? [{ cert: cert!, key: key! }],
    clients,
  }))

function faultOf(cert: string | undefined, key: string | undefined, isList: boolean): string | undefined {
  if (isList) {
    return cert === undefined && key === undefined
      ? undefined
      : 'has certificates, and a cert or key beside them: make it one more of the certificates'
  }
  if (cert === undefined && key === undefined) return 'has no certificate: add cert and key'
  if (cert === undefined) return 'has a key and no cert: add cert'
  return key === undefined ? 'has a cert and no key: add key' : undefined
}

/** The verification of a service, and the certificate by which the gateway identifies itself to it. */
export interface ServiceTlsSettings {
  readonly ca?: string | undefined
  readonly serverName?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  readonly verify: boolean
}

const serverName = textOf(text =>
  /^[a-z\d_-]{1,63}(?:\.[a-z\d_-]{1,63})*$/i.test(text) ? undefined : 'must be a host name such as orders.internal',
)

export const serviceTlsSchema: z.Schema<ServiceTlsSettings> = z
  .strictObject({
    ca: file
      .optional()
      .describe('The authorities that may vouch for the service (PEM); left out, those that Node knows.'),
    serverName: serverName
      .optional()
      .describe("The name in the service's certificate; left out, the host in its address."),
    cert: file.optional().describe('The certificate by which the gateway identifies itself (PEM).'),
    key: file.optional().describe('Its private key (PEM).'),
    verify: z.boolean().default(true).describe('false: any certificate is accepted, also that of an attacker.'),
  })
  .superRefine(({ cert, key }, context) => {
    if ((cert === undefined) === (key === undefined)) return
    const message = cert === undefined ? 'has a key and no cert: add cert' : 'has a cert and no key: add key'
    context.addIssue({ code: 'custom', message })
  })
