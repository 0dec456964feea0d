import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const limiterPackage = JSON.parse(readFileSync(`${root}packages/limiter/package.json`, 'utf8')) as {
  exports: Record<string, string>
}
const faces = Object.entries(limiterPackage.exports).filter(([, file]) => file.endsWith('.js'))

describe('the published faces', () => {
  it.each(faces)('%s exports what it did', async (_face, file) => {
    const source = file.replace('./dist/', '../packages/limiter/src/').replace(/\.js$/, '.ts')
    const exported = (await import(source)) as object
    expect(Object.keys(exported).sort()).toMatchSnapshot()
  })

  it.each(['limiter', 'gateway'])('the %s package is well formed', async name => {
    const { stdout } = await promisify(execFile)('npx', ['publint', `packages/${name}`, '--strict'], { cwd: root })
    expect(stdout).toContain('All good!')
  })
})
