import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { createLimiter } from 'diana-limiter'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createGateway, gatewaySection } from './gateway.ts'

const folder = mkdtempSync(join(tmpdir(), 'diana-tls-'))
const path = (name: string): string => join(folder, name)

beforeAll(() => {
  for (const name of ['one', 'two']) {
    const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30']
    execFileSync(
      'openssl',
      [...args, '-subj', `/CN=${name}.test`, '-keyout', path(`${name}.key`), '-out', path(`${name}.pem`)],
      {
        stdio: 'ignore',
      },
    )
  }
})
afterAll(() => rmSync(folder, { recursive: true }))

function use(cert: string, key: string): void {
  copyFileSync(path(`${key}.key`), path('key.pem'))
  copyFileSync(path(`${cert}.pem`), path('cert.pem'))
}

async function start() {
  const config = path('diana.yaml')
  writeFileSync(
    config,
    'rules: [{ id: all, limit: 100/s }]\ngateway: { tls: { cert: cert.pem, key: key.pem }, routes: [] }\n',
  )
  const limiter = await createLimiter({ config, sections: [gatewaySection] })
  const troubles: string[] = []
  const logger = { level: 'error', stream: { write: (line: string) => void troubles.push(line) } }
  const gateway = await createGateway({ limiter, folder, logger }).catch(async error => {
    await limiter.close()
    throw error
  })
  await gateway.listen({ port: 0, host: '127.0.0.1' })
  const { port } = gateway.server.address() as AddressInfo
  const shown = async (): Promise<string> => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const { subject } = socket.getPeerCertificate()
    socket.destroy()
    return String(subject.CN)
  }
  const close = async (): Promise<void> => {
    await gateway.close()
    await limiter.close()
  }
  return { shown, troubles, close }
}

it('a certificate is shown, another one when the files change, and the old one where they do not fit', async () => {
  use('one', 'one')
  const { shown, troubles, close } = await start()
  expect(await shown()).toBe('one.test')
  use('two', 'one')
  await expect.poll(() => troubles.join(), { timeout: 5000 }).toContain('is not that of the certificate')
  expect(await shown()).toBe('one.test')
  use('two', 'two')
  await expect.poll(shown, { timeout: 5000 }).toBe('two.test')
  await close()
})

it.each([
  ['a symbolic link to itself', () => symlinkSync(path('cert.pem'), path('cert.pem')), 'ELOOP'],
  ['a pipe', () => execFileSync('mkfifo', [path('cert.pem')]), 'not a regular file'],
])('a certificate that turns into %s leaves the old one in use', async (_, replace, trouble) => {
  use('one', 'one')
  const { shown, troubles, close } = await start()
  rmSync(path('cert.pem'))
  replace()
  await expect.poll(() => troubles.join(), { timeout: 5000 }).toContain(trouble)
  expect(await shown()).toBe('one.test')
  await close()
  rmSync(path('cert.pem'))
})

it.each([
  ['a key of another certificate', () => use('one', 'two'), 'is not that of the certificate'],
  ['no PEM', () => writeFileSync(path('cert.pem'), 'text'), 'are no certificate and key'],
  ['no file', () => rmSync(path('cert.pem')), 'cannot be read (ENOENT)'],
])('a gateway does not begin with %s', async (_, spoil, message) => {
  use('one', 'one')
  spoil()
  await expect(start()).rejects.toThrow(message)
})
