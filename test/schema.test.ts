import { readFileSync } from 'node:fs'
import { algorithms, dimensions, sources } from 'diana-limiter'
import { ruleFileSchema } from 'diana-limiter/schema'
import { expect, it } from 'vitest'
import { serveSection } from '../packages/gateway/src/serve/serve-settings.ts'
import { gatewaySection } from '../packages/gateway/src/settings/gateway-settings.ts'

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

it('docs/diana.schema.json is current: npm run write -- schema writes it', () => {
  expect(JSON.parse(read('docs/diana.schema.json'))).toEqual(
    ruleFileSchema({ algorithms, dimensions, sources, sections: [gatewaySection, serveSection] }),
  )
})

it('the rule file of the demo names an existing schema', () => {
  const [, schema] = /^# yaml-language-server: \$schema=(\S+)$/m.exec(read('packages/gateway/demo/diana.yaml'))!
  expect(JSON.parse(read(`packages/gateway/demo/${schema}`))).toHaveProperty('properties.rules')
})
