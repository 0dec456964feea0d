#!/usr/bin/env node
// npm run write -- schema: docs/diana.schema.json, the JSON Schema of the rule file. Build first.
import { writeFileSync } from 'node:fs'
import { serveSection } from '../packages/gateway/dist/serve/serve-settings.js'
import { gatewaySection } from '../packages/gateway/dist/settings/gateway-settings.js'
import { algorithms, dimensions, sources } from '../packages/limiter/dist/index.js'
import { ruleFileSchema } from '../packages/limiter/dist/schema.js'

const schema = ruleFileSchema({ algorithms, dimensions, sources, sections: [gatewaySection, serveSection] })
writeFileSync(new URL('../docs/diana.schema.json', import.meta.url), `${JSON.stringify(schema, null, 2)}\n`)
