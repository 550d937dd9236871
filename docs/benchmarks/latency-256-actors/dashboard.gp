# Draws dashboard.png from dashboard.dat:  gnuplot dashboard.gp
set terminal pngcairo size 1800,1080 font "DejaVu Sans,11" background "#ffffff"
set output "dashboard.png"
set datafile separator "\t"
set datafile missing "?"
set key autotitle columnhead
data = "dashboard.dat"

ours = "#1f6fb4"; ideal = "#8a8a8a"; law = "#d1495b"; other = "#edae49"; physical = "#2e8b57"
set border 3 lc rgb "#666666"
set tics nomirror textcolor rgb "#333333"
set grid ytics lc rgb "#e4e4e4" lt 1
set style fill solid 0.85 noborder
set boxwidth 0.62
set key top left reverse Left samplen 2 spacing 1.1
set multiplot layout 2,3 title "Latency-v0 on AMD EPYC, 2 cores" font "DejaVu Sans,16" offset 0,-0.3 \
       margins 0.045,0.985,0.075,0.90 spacing 0.055,0.15

set logscale x 2
set xrange [0.9:256*2.2]
set xlabel "environments"
set logscale y 2
set yrange [0.8:256*1.3]
set title "Speed-up against one environment"
plot [0.9:256*2.2] (x <= 256 ? x : NaN) with lines dt 2 lc rgb ideal title "ideal", \
     x/(1+6.7277475e-05*(x-1)+0*x*(x-1)) with lines lw 2 lc rgb law title "Amdahl, serial 0 %", \
     data using "environments":"speed_up" with points pt 7 ps 1.4 lc rgb ours title "measured", \
     data using "environments":"speed_up":"speed_up_label" \
       with labels left offset 1,-0.2 font ",9" tc rgb "#444444" notitle

unset logscale y
set yrange [0:132.25]
set key top right noreverse Right
set title "Parallel efficiency in %"
plot 60 with lines dt 3 lc rgb ideal title "60 %", \
     data using "environments":"limit_percent" with points pt 9 ps 1.3 lc rgb physical title "of the physical limit", \
     data using "environments":"efficiency_percent" with points pt 7 ps 1.4 lc rgb ours title "of ideal speed-up", \
     data using "environments":"efficiency_percent":"efficiency_label" \
       with labels left offset 1,0 font ",9" tc rgb "#444444" notitle

unset logscale x
set xrange [-0.6:2-0.4]
set xlabel "runners x environments of each"
set yrange [0:*]
set title "Time per iteration in s, with standard deviation"
plot data using 0:"seconds":xtic(1) with boxes lc rgb ours notitle, \
     data using 0:(column("seconds")-column("deviation")):(0):(2*column("deviation")) \
       with vectors nohead lw 2 lc rgb "#222222" notitle

set yrange [0:108]
set title "CPU in %, all cores: average, and from least to most"
plot 70 with lines dt 3 lc rgb ideal title "70 %", \
     data using 0:"cpu_average":xtic(1) with boxes lc rgb other notitle, \
     data using 0:"cpu_min":(0):(column("cpu_max")-column("cpu_min")) with vectors nohead lw 2 lc rgb "#222222" notitle

set title "GPU"
unset xtics
unset xlabel
set label 1 "no NVIDIA driver (libnvidia-ml.so.1) on this machine" at graph 0.5,0.5 center textcolor rgb "#777777"
plot -1 with lines notitle
unset label 1
set xtics nomirror textcolor rgb "#333333" 
set xlabel "runners x environments of each"

set yrange [0:30.72]
set key top left reverse Left
set title "Env-steps/s in thousands"
plot data using 0:(column("rate")/1000):xtic(1) with boxes lc rgb ours notitle, \
     data using 0:(column("limit")/1000) with points pt 9 ps 1.3 lc rgb physical title "physical limit of its threads"
unset multiplot
