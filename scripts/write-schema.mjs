#!/usr/bin/env node
// npm run schema: the JSON Schema of the rule file, for the package and for the docs. Build first.
import { writeFileSync } from 'node:fs'
import { gatewaySection } from '../packages/gateway/dist/settings/gateway-settings.js'
import { algorithms, dimensions, ruleFileSchema, sources } from '../packages/limiter/dist/index.js'

const text = `${JSON.stringify(ruleFileSchema({ algorithms, dimensions, sources, sections: [gatewaySection] }), null, 2)}\n`
for (const path of ['../packages/limiter/diana.schema.json', '../docs/diana.schema.json']) {
  writeFileSync(new URL(path, import.meta.url), text)
}
