// What the page of a profile uses of its libraries; the scripts in gradix/_api/costs/web draw with it.
import { CustomChart, LineChart } from "echarts/charts";
import { DataZoomComponent, GridComponent, MarkLineComponent, MarkPointComponent, TooltipComponent } from "echarts/components";
import { init, use, version } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { Graph, layout, version as versionOfDagre } from "@dagrejs/dagre";

use([CustomChart, DataZoomComponent, GridComponent, LineChart, MarkLineComponent, MarkPointComponent, SVGRenderer, TooltipComponent]);

export { Graph, init, layout, version, versionOfDagre };
