#!/usr/bin/env node
// npm run schema: the JSON Schema of the rule file, without spaces for the package and formatted for the docs. Build first.
import { writeFileSync } from 'node:fs'
import { serveSection } from '../packages/gateway/dist/serve/serve-settings.js'
import { gatewaySection } from '../packages/gateway/dist/settings/gateway-settings.js'
import { algorithms, dimensions, sources } from '../packages/limiter/dist/index.js'
import { ruleFileSchema } from '../packages/limiter/dist/schema.js'

const schema = ruleFileSchema({ algorithms, dimensions, sources, sections: [gatewaySection, serveSection] })
const write = (path, indent) => {
  writeFileSync(new URL(path, import.meta.url), `${JSON.stringify(schema, null, indent)}\n`)
}
write('../packages/limiter/diana.schema.json', 0)
write('../docs/diana.schema.json', 2)
