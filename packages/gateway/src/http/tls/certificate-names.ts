import type { X509Certificate } from 'node:crypto'
import { alternativeNames } from 'diana-limiter/gateway'

/** Finds the value for a name that a caller asks for: by the name itself, or by `*.` and the rest of the name. */
export class CertificateNames<Value> {
  readonly #values = new Map<string, Value>()

  /** Adds names with a value; the first value of a name stays. */
  add(names: readonly string[], value: Value): void {
    for (const name of names.map(oneSpelling)) if (!this.#values.has(name)) this.#values.set(name, value)
  }

  find(asked: string): Value | undefined {
    const name = oneSpelling(asked)
    // RFC 9525, section 6.3: a wildcard stands for one label
    const dot = name.indexOf('.')
    return this.#values.get(name) ?? (dot <= 0 ? undefined : this.#values.get(`*${name.slice(dot)}`))
  }
}

/** Returns the names that a certificate is for; its common name counts only if it has no others. */
export function namesOf(certificate: X509Certificate): string[] {
  const names = alternativeNames(certificate.subjectAltName ?? '').filter(([kind]) => kind === 'DNS')
  if (names.length > 0) return names.map(([, name]) => name)
  const common = certificate.subject?.split('\n').find(line => line.startsWith('CN='))
  return common === undefined ? [] : [common.slice(3)]
}

function oneSpelling(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}
