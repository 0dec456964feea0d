export { documentChange, noteChanges } from '../rules/edit/rule-changes.ts'
