import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { Authority } from '@test/tls/authority'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chainWarnings, readAuthorities, readPair, readRevocations } from './pem.ts'

let authority: Authority
const at = (name: string): string => authority.path(name)
const pair = (cert: string, key: string) => readPair({ cert: at(cert), key: at(key) }, Date.now())

beforeAll(() => {
  authority = new Authority()
  authority.issue('leaf', { names: 'DNS:leaf.test' })
  authority.issue('expired', { days: -1 })
  authority.issue('between', { isAuthority: true })
  authority.issue('deep', { issuer: 'between' })
  writeFileSync(at('chain.pem'), Buffer.concat([authority.pem('deep.pem'), authority.pem('between.pem')]))
  writeFileSync(at('reversed.pem'), Buffer.concat([authority.pem('between.pem'), authority.pem('deep.pem')]))
  writeFileSync(at('strange.pem'), Buffer.concat([authority.pem('deep.pem'), authority.pem('leaf.pem')]))
  writeFileSync(at('text.pem'), 'text')
  writeFileSync(at('empty.pem'), '')
  writeFileSync(at('broken.pem'), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')
  mkdirSync(at('folder.pem'))
  const run = (...args: string[]) => execFileSync('openssl', args, { cwd: authority.folder, stdio: 'ignore' })
  run('x509', '-in', 'leaf.pem', '-outform', 'der', '-out', 'der.pem')
  run('pkey', '-in', 'leaf.key', '-aes128', '-passout', 'pass:secret', '-out', 'locked.key')
  run('req', '-x509', '-newkey', 'rsa:512', '-nodes', '-subj', '/CN=weak', '-keyout', 'weak.key', '-out', 'weak.pem')
  copyFileSync(at('ca.pem'), at('root.pem'))
})
afterAll(() => authority.close())

it.each([
  ['a file that is not there', 'none.pem', 'leaf.key', /none\.pem cannot be read \(ENOENT\): check the path/],
  ['a key that is not there', 'leaf.pem', 'none.key', /none\.key cannot be read \(ENOENT\)/],
  ['a folder', 'folder.pem', 'leaf.key', /folder\.pem cannot be read/],
  ['text', 'text.pem', 'leaf.key', /text\.pem is not a certificate in PEM: it must begin with/],
  ['an empty file', 'empty.pem', 'leaf.key', /empty\.pem is not a certificate in PEM/],
  ['DER', 'der.pem', 'leaf.key', /der\.pem is not a certificate in PEM: convert it from DER/],
  [
    'a key in place of the certificate',
    'leaf.key',
    'leaf.key',
    /leaf\.key is not a certificate in PEM: it holds a private key/,
  ],
  [
    'a certificate with broken content',
    'broken.pem',
    'leaf.key',
    /broken\.pem holds a certificate that cannot be read/,
  ],
  ['a certificate in place of the key', 'leaf.pem', 'leaf.pem', /leaf\.pem is not a private key that can be used/],
  ['a key with a passphrase', 'leaf.pem', 'locked.key', /locked\.key .*: it has a passphrase/],
  [
    'the key of another certificate',
    'leaf.pem',
    'deep.key',
    /the key in .*deep\.key is not that of the certificate in/,
  ],
  [
    'a chain that begins with the issuer',
    'reversed.pem',
    'deep.key',
    /is that of certificate 2 in .*put that certificate first/,
  ],
  [
    'a key that OpenSSL calls too short',
    'weak.pem',
    'weak.key',
    /weak\.pem and .*weak\.key cannot be used \(.*key too small/,
  ],
])('%s is refused with a message that names the file and the remedy', (_, cert, key, message) => {
  expect(() => pair(cert, key)).toThrow(message)
})

describe('a certificate that can be used is reported', () => {
  it('a certificate that can be used is reported with the date if it has expired', () => {
    expect(pair('expired.pem', 'expired.key').warnings).toEqual([
      expect.stringMatching(/expired\.pem expired on \d{4}-\d\d-\d\d \(CN=expired\): renew it/),
    ])
  })

  it('a certificate that can be used is reported with the date if it is not valid yet', () => {
    const early = readPair({ cert: at('leaf.pem'), key: at('leaf.key') }, Date.now() - 86_400_000)
    expect(early.warnings).toEqual([expect.stringMatching(/leaf\.pem is not valid before \d{4}-\d\d-\d\d/)])
  })

  it.each([
    ['deep.pem', 'deep.key', [/deep\.pem ends without the certificate of its issuer \(CN=between\): append it/]],
    ['strange.pem', 'deep.key', [/holds CN=deep before CN=leaf, which did not issue it/]],
    ['chain.pem', 'deep.key', [/ends without the certificate of its issuer \(CN=Test Root\)/]],
    ['root.pem', 'ca.key', []],
  ])(
    'a certificate that can be used is reported if its chain is incomplete or out of order: %s',
    (cert, key, warnings) => {
      const found = [...chainWarnings(pair(cert, key).certificates, cert)]
      expect(found).toEqual(warnings.map(warning => expect.stringMatching(warning)))
    },
  )
})

it.each([
  ['none.pem', /none\.pem cannot be read \(ENOENT\)/],
  ['text.pem', /text\.pem is not a certificate in PEM/],
  ['leaf.pem', /leaf\.pem holds CN=leaf, which is not the certificate of an authority/],
  ['chain.pem', /chain\.pem holds CN=deep, which is not the certificate of an authority/],
])('authorities in %s are refused with the reason', (file, message) => {
  expect(() => readAuthorities(at(file), Date.now())).toThrow(message)
})

it('a certificate that has signed itself is an authority for itself', () => {
  expect(readAuthorities(at('ca.pem'), Date.now()).warnings).toEqual([])
})

it('a certificate revocation list is read in PEM, and refused otherwise', () => {
  authority.revoke('leaf')
  expect(readRevocations(at('ca.crl')).length).toBeGreaterThan(100)
  expect(() => readRevocations(at('leaf.pem'))).toThrow(/leaf\.pem is not a list of revoked certificates in PEM/)
  expect(() => readRevocations(at('none.crl'))).toThrow(/none\.crl cannot be read \(ENOENT\)/)
})
