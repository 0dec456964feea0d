export { ruleYaml } from '../rules/edit/flow-yaml.ts'
